"""The tool with which the agent asks the person a question. The turn continues with the answer."""

from typing import Annotated

import msgspec

from hermes.types.tools import NeedsPerson, Tool, ToolContext
from hermes.types.turns import (
    Answered,
    Approved,
    Cancelled,
    Denied,
    Expired,
    Question,
    Undelivered,
)

ON_YOUR_OWN = "Go on with your best judgement, and say what you assumed."


class Clarify(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    question: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    choices: Annotated[
        list[Annotated[str, msgspec.Meta(min_length=1, max_length=100)]],
        msgspec.Meta(max_length=4),
    ] = []


def clarify_tool(seconds: float) -> Tool[Clarify]:
    """Returns the tool. The person must answer within `seconds`."""

    async def run(context: ToolContext, arguments: Clarify) -> str:
        match context.decision:
            case None:
                raise NeedsPerson(
                    Question(
                        call=context.call,
                        kind="question",
                        prompt=arguments.question,
                        choices=tuple(arguments.choices),
                        expires_in=seconds,
                    )
                )
            case Answered(text=text):
                return _answer(text.strip(), arguments.choices)
            case Approved():
                return "The person agrees."
            case Denied(reason=reason):
                return f"The person does not answer{reason and f': {reason}'}. {ON_YOUR_OWN}"
            case Expired():
                return f"Nobody answered in time. {ON_YOUR_OWN}"
            case Undelivered() | Cancelled():
                return f"Nobody has seen the question. {ON_YOUR_OWN}"

    return Tool(
        name="clarify",
        description="Ask the person when you can't go on without knowing, with up to 4 choices."
        " They can also answer in their own words. Don't ask what you can find out.",
        arguments=Clarify,
        handler=run,
        repeatable=True,
        uses_files=False,
        toolset="clarify",
    )


def _answer(text: str, choices: list[str]) -> str:
    """Returns the person's answer. If the answer is the number of a choice, returns that choice."""
    number = text.rstrip(".)")
    numbered = {str(place): choice for place, choice in enumerate(choices, 1)}
    return numbered.get(number, text)
