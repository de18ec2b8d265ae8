"""Encodes values as bytes for the store's blobs, and decodes them."""

import zlib

import msgspec

from hermes.types.delivery import Placed
from hermes.types.events import AgentEvent, TextDelta
from hermes.types.messages import Content, Message, MessageEvent
from hermes.types.turns import Prompt
from hermes.types.value import Value

TEXT_PIECE = 16_384
"""Maximum number of characters in one piece of text. A long text is stored and read in pieces."""
encode = msgspec.json.Encoder().encode
checksum = zlib.crc32
_event_decoder = msgspec.json.Decoder(MessageEvent)
_message_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
decode_content = msgspec.json.Decoder(Content).decode
decode_placed = msgspec.json.Decoder(tuple[Placed, ...]).decode
decode_prompt = msgspec.json.Decoder(Prompt).decode
decode_choices = msgspec.json.Decoder(tuple[str, ...]).decode


class WrongChecksum(msgspec.DecodeError):
    """Raised when stored bytes do not match their checksum."""


def decode_event(body: bytes, crc: int | None) -> MessageEvent:
    """Decodes an event. Raises DecodeError if it can't be read. `crc` is None if an earlier version
    wrote the row."""
    _verify(body, crc)
    return _event_decoder.decode(body)


def decode_message(body: bytes, crc: int | None) -> Message:
    """Decodes a message. Raises DecodeError if it can't be read. `crc` is None if an earlier
    version wrote the row."""
    _verify(body, crc)
    return _message_decoder.decode(body)


def _verify(body: object, crc: int | None) -> None:
    # A damaged row may hold a number or text instead of bytes.
    if not isinstance(body, bytes) or (crc is not None and checksum(body) != crc):
        raise WrongChecksum("the checksum is wrong")


class Recorded(Value):
    """A stored event of a turn. Consecutive text deltas are stored as one event, with their
    lengths.

    A long text is stored in pieces of at most `TEXT_PIECE` characters.
    """

    seq: int
    """The number of the event. If deltas were joined, it is the number of the last delta."""
    event: AgentEvent
    lengths: tuple[int, ...] = ()
    """Number of characters of each joined delta. With these lengths, a reader that has seen some of
    the deltas can continue with the next delta."""

    def after(self, seq: int) -> AgentEvent | None:
        """Returns the event for a reader that has seen the events up to number `seq`. Deltas that
        the reader has seen are removed. Returns None if nothing remains."""
        if self.seq <= seq:
            return None
        seen = len(self.lengths) - (self.seq - seq)
        if not isinstance(self.event, TextDelta) or seen <= 0:
            return self.event
        return TextDelta(text=self.event.text[sum(self.lengths[:seen]) :])


decode_recorded = msgspec.json.Decoder(list[Recorded]).decode


def record(first: int, events: list[AgentEvent]) -> list[Recorded]:
    """Converts events to their stored form; the first event has the number `first`."""
    kept: list[Recorded] = []
    run: list[str] = []
    size = 0
    for seq, event in enumerate(events, first):
        text = event.text if isinstance(event, TextDelta) else None
        if run and (text is None or size + len(text) > TEXT_PIECE):
            kept.append(_text_run(seq - 1, run))
            run, size = [], 0
        if text is None:
            kept.append(Recorded(seq=seq, event=event))
        else:
            run.append(text)
            size += len(text)
    if run:
        kept.append(_text_run(first + len(events) - 1, run))
    return kept


def _text_run(seq: int, texts: list[str]) -> Recorded:
    event = TextDelta(text="".join(texts))
    return Recorded(seq=seq, event=event, lengths=tuple(map(len, texts)))
