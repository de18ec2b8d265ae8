"""Answers in a form that the request wants: checked before anybody sees them, and repaired once."""

import re
from collections.abc import Awaitable, Callable

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from hermes.text.json_schema import json_problem
from hermes.types.messages import AssistantMessage, ResponseFormat
from hermes.types.turns import Completed, Failed, Outcome

LONGEST_REFUSAL = 300
"""Characters of a model's refusal that its error quotes."""
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
"""Calls the model again with its answer and a message that says what is wrong with it."""

_FENCED = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)


async def structured_outcome(
    wanted: ResponseFormat, message: AssistantMessage, repair: Repair
) -> Outcome:
    """Completed with JSON alone, in the form that is wanted; or Failed, never a part of it."""
    checked = await _checked(wanted, message)
    if isinstance(checked, str):
        again = await repair(message, REPAIR.format(problem=checked))
        checked = await _checked(wanted, again)
    if isinstance(checked, str):
        return Failed(
            reason=f"The model's answer does not have the form that was asked for: {checked}.",
            code="invalid_structured_output",
            status=502,
            temporary=True,
        )
    return checked


async def _checked(wanted: ResponseFormat, message: AssistantMessage) -> Outcome | str:
    """The outcome; or, for an answer that may be repaired, what is wrong with it."""
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
    """What is wrong with the form of an answer; empty if nothing is."""
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
    """The text without the code fence that many models put around JSON."""
    found = _FENCED.fullmatch(text.strip())
    return (found[1] if found else text).strip()
