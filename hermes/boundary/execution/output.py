"""Keeps the output of a command as text of a bounded length."""

from hermes.text.console import console_text

OUTPUT_HEAD = OUTPUT_TAIL = 100_000
"""Number of bytes that are kept at the beginning of the output, and also at its end."""
PROGRESS_LINE = 4000
"""Maximum number of bytes of a line that is shown as progress."""

_BREAKS = b" \t\r\n\"'"
"""Characters between words. Output is cut only at these characters, because redaction does not
recognise half a secret."""


class Output:
    """Keeps the beginning and the end of a stream of any length."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def add(self, data: bytes) -> None:
        self._seen += len(data)
        room = OUTPUT_HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * OUTPUT_TAIL:
            del self._tail[:-OUTPUT_TAIL]

    def text(self) -> str:
        tail = bytes(self._tail[-OUTPUT_TAIL:])
        if self._seen == len(self._head) + len(tail):
            return console_text(bytes(self._head) + tail)
        head = bytes(self._head)
        head = head[: max(map(head.rfind, _BREAKS)) + 1]
        tail = tail[_first(_BREAKS, tail) :]
        note = f"\n\n[{self._seen - len(head) - len(tail)} bytes are left out here]\n\n"
        return console_text(head) + note + console_text(tail)

    def last_line(self) -> str:
        """Returns the last line of output, to show as progress; empty while that line has more than
        `PROGRESS_LINE` bytes."""
        end = bytes(self._head[-PROGRESS_LINE:] + self._tail[-PROGRESS_LINE:])[-PROGRESS_LINE:]
        if self._seen > len(end):
            end = end[_first(b"\r\n", end) :]
        return console_text(end).rstrip().rpartition("\n")[2]


def _first(breaks: bytes, data: bytes) -> int:
    """Returns the index of the first byte in `data` that is in `breaks`, or the length of
    `data`."""
    return min((at for one in breaks if (at := data.find(one)) >= 0), default=len(data))
