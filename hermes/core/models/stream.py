"""Parses a stream of server-sent events into an answer."""

from collections.abc import Sequence

import msgspec

from hermes.core.models.answer import StreamedAnswer
from hermes.text.event_stream import EventStreamParser
from hermes.types.errors import Disconnected, Rejected
from hermes.types.models import StreamParser

LONGEST_EVENT = 4 << 20
"""Maximum number of bytes of a line. A stream with a longer line is rejected."""
_EMPTY = (b"", b"[DONE]")


class PayloadStream:
    """Passes each payload (the data of one event) to the parser as soon as the payload is
    complete."""

    def __init__(self, answer: StreamedAnswer, parser: StreamParser) -> None:
        self.answer = answer
        self._parser = parser
        self._events = EventStreamParser()

    def feed(self, data: bytes) -> None:
        """Parses the next bytes, and emits the text in them as one event."""
        self.take(self._events.feed(data))
        self.answer.flush()
        if self._events.pending > LONGEST_EVENT:
            raise Rejected(
                f"{self.answer.choice.provider} sent a line without end: check its base_url"
            )

    def end(self) -> None:
        """Parses the last line if it has no newline, because some servers omit the last newline."""
        self.take(self._events.end())
        self.answer.flush()

    def take(self, payloads: Sequence[bytes]) -> None:
        """Parses complete payloads. An answer that is not streamed is one payload."""
        try:
            for payload in payloads:
                if payload not in _EMPTY:
                    self._parser.take(payload)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            # Errors after the end of an answer are ignored.
            if not self.answer.finished:
                raise Disconnected(
                    f"{self.answer.choice.provider} sent an invalid answer ({error}); try again"
                ) from error
