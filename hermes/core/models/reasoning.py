"""Stores the signed reasoning of an answer, and sends it back to the model that wrote it."""

from collections.abc import Sequence

import msgspec
from msgspec import Raw, Struct

from hermes.types.messages import AssistantMessage
from hermes.types.profile import ModelChoice


class ReasoningPart(Struct, array_like=True):
    at: int
    """Number of parts of the message that precede this reasoning. The text counts as one part, and
    each call counts as one part."""
    part: Raw


_decoder = msgspec.json.Decoder(list[ReasoningPart])


def encode_reasoning(thoughts: Sequence[ReasoningPart]) -> bytes:
    """Encodes the reasoning as the body of an `Echo` (data that later requests send back to the
    provider). The result is empty if there is no reasoning."""
    return msgspec.json.encode(thoughts) if thoughts else b""


def insert_reasoning(parts: Sequence[bytes], body: str) -> list[bytes]:
    """Inserts the reasoning from the body of an `Echo` into the parts of a message, at the
    positions that it had in the answer."""
    whole = list(parts)
    for thought in reversed(_decoder.decode(body) if body else ()):
        whole.insert(thought.at, bytes(thought.part))
    return whole


def echo_body(message: AssistantMessage, choice: ModelChoice) -> str:
    """Returns the body of the message's `Echo` (data that later requests send back to the
    provider), which holds the model's reasoning. Returns "" if the message has no `Echo`, or if
    another model wrote the message."""
    echo = message.echo
    if echo is None or (echo.wire, echo.model) != (choice.wire, choice.model):
        return ""
    return echo.body
