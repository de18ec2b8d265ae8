"""Structured output: checks the format of an answer, and lets the model repair it once."""

import re
from collections.abc import Awaitable, Callable

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from hermes.text.json_schema import json_problem
from hermes.types.messages import AssistantMessage, ResponseFormat
from hermes.types.turns import Completed, Failed, Outcome

LONGEST_REFUSAL = 300
"""Maximum number of characters of a model's refusal that the error quotes."""
REPAIR = (
    "Your answer does not have the required form: {problem}. Give the whole answer again, as JSON"
    " in that form and nothing else."
)
TRUNCATED = Failed(
    reason="The model reached its limit of output tokens in the middle of its JSON answer. Raise"
    " max_tokens, or ask for less.",
    code="output_truncated",
    status=422,
)

Repair = Callable[[AssistantMessage, str], Awaitable[AssistantMessage]]
"""Calls the model again with its answer and a message that describes the problem. Returns the new
answer."""

_FENCED = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)


async def structured_outcome(
    wanted: ResponseFormat, message: AssistantMessage, repair: Repair
) -> Outcome:
    """Returns Completed with JSON of the wanted format. If the model refuses to answer, or its
    answer is still wrong after one repair, returns Failed."""
    checked = await _checked(wanted, message)
    if isinstance(checked, str):
        again = await repair(message, REPAIR.format(problem=checked))
        checked = await _checked(wanted, again)
    if isinstance(checked, str):
        return Failed(
            reason=f"The model's answer does not have the required format: {checked}.",
            code="invalid_structured_output",
            status=502,
            temporary=True,
        )
    return checked


async def _checked(wanted: ResponseFormat, message: AssistantMessage) -> Outcome | str:
    """Returns Completed if the answer has the wanted format, and Failed if the model refused to
    answer. For other answers, returns a description of the problem, so that the model can repair
    its answer."""
    if message.cut == "length":
        return TRUNCATED
    if message.cut:
        refusal = " ".join(message.text.split())[:LONGEST_REFUSAL] or "nothing was said"
        return Failed(reason=f"The model refused to answer: {refusal}", code="refused", status=400)
    if message.calls:
        return "it calls a tool"
    text = unfenced(message.text)
    problem = await anyio.to_thread.run_sync(format_problem, wanted, text)
    return problem or Completed(message=replace(message, text=text))


def format_problem(wanted: ResponseFormat, text: str) -> str:
    """Returns the problem with the format of an answer, or "" if there is none."""
    if not text:
        return "it is empty"
    if wanted.kind == "json_schema":
        return json_problem(wanted.schema, text)
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return f"it is not a JSON object: {error}"
    return ""


def unfenced(text: str) -> str:
    """Removes the code fence that many models put around JSON."""
    found = _FENCED.fullmatch(text.strip())
    return (found[1] if found else text).strip()
