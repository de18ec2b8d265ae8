"""Reads a stream of server-sent events, cut anywhere, into an answer."""

from collections.abc import Sequence

import msgspec

from hermes.core.models.answer import StreamedAnswer
from hermes.text.event_stream import EventStreamParser
from hermes.types.errors import Disconnected, Rejected
from hermes.types.models import StreamParser

LONGEST_EVENT = 4 << 20
"""Bytes of a line from which on the stream is refused."""
_EMPTY = (b"", b"[DONE]")


class PayloadStream:
    """Passes each payload to the parser as soon as it is complete."""

    def __init__(self, answer: StreamedAnswer, parser: StreamParser) -> None:
        self.answer = answer
        self._parser = parser
        self._events = EventStreamParser()

    def feed(self, data: bytes) -> None:
        """Takes the next bytes; the text in them is emitted at once, as one event."""
        self.take(self._events.feed(data))
        self.answer.flush()
        if self._events.pending > LONGEST_EVENT:
            raise Rejected(
                f"{self.answer.choice.provider} sent a line without end: check its base_url"
            )

    def end(self) -> None:
        """Takes a last line without a newline, which some servers forget."""
        self.take(self._events.end())
        self.answer.flush()

    def take(self, payloads: Sequence[bytes]) -> None:
        """Takes complete payloads; an answer that is not streamed is one payload."""
        try:
            for payload in payloads:
                if payload not in _EMPTY:
                    self._parser.take(payload)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            # A finished answer is kept, whatever comes after it.
            if not self.answer.finished:
                raise Disconnected(
                    f"{self.answer.choice.provider} sent something else than an answer"
                    f" ({error}); try again"
                ) from error
