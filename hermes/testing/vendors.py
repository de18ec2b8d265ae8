"""Checks our requests with the types in the vendors' own packages, and with rules that these types
do not express."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

import msgspec
from pydantic import TypeAdapter

from hermes.testing.scripted import ChatRequest, refusal


class _Block(msgspec.Struct):
    type: str
    text: str = ""
    id: str = ""
    tool_use_id: str = ""


class _Said(msgspec.Struct):
    role: str
    content: list[_Block]


class _Messages(msgspec.Struct):
    messages: list[_Said]


class _Item(msgspec.Struct):
    type: str
    call_id: str = ""


class _Input(msgspec.Struct):
    input: list[_Item]


def check(wire: str, body: bytes) -> None:
    """Raises ValueError if the vendor would refuse the body of a request."""
    _read_through(_adapter(wire).validate_python(msgspec.json.decode(body), strict=True))
    if (reason := _RULES[wire](body)) is not None:
        raise ValueError(reason)


@cache
def _adapter(wire: str) -> TypeAdapter[object]:
    # Importing the package of a vendor takes up to 3 s. The package is imported here and not at the
    # top of the module, because every test process imports this module.
    module, _, name = _BODIES[wire].rpartition(".")
    return TypeAdapter(vars(import_module(module))[name])


def _read_through(value: object) -> None:
    """Reads `value` and everything inside it, because a validator checks some parts only when they
    are read."""
    if isinstance(value, dict):
        for one in value.values():
            _read_through(one)
    elif hasattr(value, "__iter__") and not isinstance(value, str):
        for one in value:
            _read_through(one)


def _unpaired(body: bytes) -> str | None:
    return refusal(msgspec.json.decode(body, type=ChatRequest))


def _unanswered(body: bytes) -> str | None:
    items = msgspec.json.decode(body, type=_Input).input
    waiting: set[str] = set()
    for item in items:
        if item.type == "function_call":
            waiting.add(item.call_id)
        elif item.type == "function_call_output":
            if item.call_id not in waiting:
                return "an output answers no open call"
            waiting.remove(item.call_id)
    return "a call has no output" if waiting else None


def _misplaced(body: bytes) -> str | None:
    messages = msgspec.json.decode(body, type=_Messages).messages
    waiting: list[str] = []
    for index, said in enumerate(messages):
        if said.role != ("assistant" if index % 2 else "user"):
            return "the roles don't alternate, or don't begin with the user"
        if any(block.type == "text" and not block.text.strip() for block in said.content):
            return "a text is empty"
        results = [block.tool_use_id for block in said.content if block.type == "tool_result"]
        first = said.content[: len(waiting)]
        if sorted(results) != waiting or any(block.type != "tool_result" for block in first):
            return "a call is not answered at the beginning of the next message"
        waiting = sorted(block.id for block in said.content if block.type == "tool_use")
    return "a call has no answer" if waiting else None


_BODIES: Mapping[str, str] = {
    "chat": "openai.types.chat.completion_create_params.CompletionCreateParamsStreaming",
    "responses": "openai.types.responses.response_create_params.ResponseCreateParamsStreaming",
    "anthropic": "anthropic.types.message_create_params.MessageCreateParamsStreaming",
}
"""Maps each wire format to the type that the vendor's own package has for the body of a request."""
_RULES: Mapping[str, Callable[[bytes], str | None]] = {
    "chat": _unpaired,
    "responses": _unanswered,
    "anthropic": _misplaced,
}
