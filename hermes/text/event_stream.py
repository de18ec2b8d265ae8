"""Reads server-sent events from bytes that are cut anywhere."""


class EventStreamParser:
    """Finds the payloads of a stream. Every `data:` line is one, as model providers send them."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def pending(self) -> int:
        """Bytes of the line that has not ended yet."""
        return len(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that have become whole, without white space around them."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line[5:].strip() for line in lines if line.startswith(b"data:")]

    def end(self) -> list[bytes]:
        """The payload of a last line without a newline, which some servers forget."""
        return self.feed(b"\n")
