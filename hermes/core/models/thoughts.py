"""Signed thoughts: kept at their places in an answer, and given back to the model that had them."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from hermes.types.messages import AssistantMessage
from hermes.types.profile import ModelChoice


class Thought(Struct, array_like=True):
    at: int
    """How many parts of the message come before it: its text is one, and each call."""
    part: Raw


_decoder = msgspec.json.Decoder(list[Thought])


def kept(thoughts: Sequence[Thought]) -> bytes:
    """The body of an echo; empty without thoughts."""
    return msgspec.json.encode(thoughts) if thoughts else b""


def woven(parts: Sequence[bytes], body: str) -> list[bytes]:
    """The parts of a message, with the thoughts of the echo where they were."""
    whole = list(parts)
    for thought in reversed(_decoder.decode(body) if body else ()):
        whole.insert(thought.at, bytes(thought.part))
    return whole


def echoed(message: AssistantMessage, choice: ModelChoice) -> str:
    """The body of the message's echo; empty for any model but the one that it came from."""
    echo = message.echo
    if echo is None or (echo.wire, echo.model) != (choice.wire, choice.model):
        return ""
    return echo.body
