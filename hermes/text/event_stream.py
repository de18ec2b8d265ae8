"""Parses server-sent events from chunks of bytes."""

import re

_PAYLOAD = re.compile(rb"^data:(.*)", re.MULTILINE)


class EventStreamParser:
    """Parses a stream in which every `data:` line is one payload, as model providers send it."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def pending(self) -> int:
        """Number of bytes of the unfinished line."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the payloads that are complete now, without surrounding white space."""
        lines, _, self._rest = (self._rest + data).rpartition(b"\n")
        return [payload.strip() for payload in _PAYLOAD.findall(lines)]

    def end(self) -> list[bytes]:
        """Returns the payload of the last line if its newline is missing. Some servers omit the
        last newline."""
        return self.feed(b"\n")
