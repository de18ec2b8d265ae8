"""Keeps the signed reasoning of an answer, and sends it back to the model that it came from."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from hermes.types.messages import AssistantMessage
from hermes.types.profile import ModelChoice


class ReasoningPart(Struct, array_like=True):
    at: int
    """Number of parts of the message before it: the text is one, and so is each call."""
    part: Raw


_decoder = msgspec.json.Decoder(list[ReasoningPart])


def encode_reasoning(thoughts: Sequence[ReasoningPart]) -> bytes:
    """The body of an echo; empty without thoughts."""
    return msgspec.json.encode(thoughts) if thoughts else b""


def insert_reasoning(parts: Sequence[bytes], body: str) -> list[bytes]:
    """The parts of a message, with the thoughts of the echo at their old places."""
    whole = list(parts)
    for thought in reversed(_decoder.decode(body) if body else ()):
        whole.insert(thought.at, bytes(thought.part))
    return whole


def echo_body(message: AssistantMessage, choice: ModelChoice) -> str:
    """The body of the message's echo; empty for any model but the one that it came from."""
    echo = message.echo
    if echo is None or (echo.wire, echo.model) != (choice.wire, choice.model):
        return ""
    return echo.body
