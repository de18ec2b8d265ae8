"""Values to bytes and back, for the store's blobs."""

import zlib

import msgspec

from hermes.types.delivery import Placed
from hermes.types.events import AgentEvent, TextDelta
from hermes.types.messages import Content, Message, MessageEvent
from hermes.types.turns import Prompt
from hermes.types.value import Value

TEXT_PIECE = 16_384
"""Characters of one piece of text at most, so that a long text can be read in pieces."""
encode = msgspec.json.Encoder().encode
checksum = zlib.crc32
_event_decoder = msgspec.json.Decoder(MessageEvent)
_message_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
decode_content = msgspec.json.Decoder(Content).decode
decode_placed = msgspec.json.Decoder(tuple[Placed, ...]).decode
decode_prompt = msgspec.json.Decoder(Prompt).decode
decode_choices = msgspec.json.Decoder(tuple[str, ...]).decode


class WrongChecksum(msgspec.DecodeError):
    """The bytes are not those that were written."""


def decode_event(body: bytes, crc: int | None) -> MessageEvent:
    """The event; DecodeError if it can't be read. Rows of earlier versions have no checksum."""
    _verify(body, crc)
    return _event_decoder.decode(body)


def decode_message(body: bytes, crc: int | None) -> Message:
    """The message; DecodeError if it can't be read. Rows of earlier versions have no checksum."""
    _verify(body, crc)
    return _message_decoder.decode(body)


def _verify(body: object, crc: int | None) -> None:
    # A damaged row may hold a number or text instead of bytes.
    if not isinstance(body, bytes) or (crc is not None and checksum(body) != crc):
        raise WrongChecksum("the checksum is wrong")


class Recorded(Value):
    """Events of a turn as they are kept: neighbouring text deltas as one, with their lengths.

    A long text is kept in pieces of at most `TEXT_PIECE` characters.
    """

    seq: int
    """Of the event, or of the last delta of the run."""
    event: AgentEvent
    lengths: tuple[int, ...] = ()
    """Characters of each delta, so that a reader can go on in the middle of the run."""

    def after(self, seq: int) -> AgentEvent | None:
        """The part of the event that a reader who has seen `seq` lacks; None if there is none."""
        if self.seq <= seq:
            return None
        seen = len(self.lengths) - (self.seq - seq)
        if not isinstance(self.event, TextDelta) or seen <= 0:
            return self.event
        return TextDelta(text=self.event.text[sum(self.lengths[:seen]) :])


decode_recorded = msgspec.json.Decoder(list[Recorded]).decode


def record(first: int, events: list[AgentEvent]) -> list[Recorded]:
    """Events numbered from `first`, ready to be kept."""
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
