"""What a command prints, as text, and never more of it than fits."""

import re

HEAD = TAIL = 100_000
"""Bytes that are kept of the beginning and of the end."""
LINE = 4000
"""Bytes of a line that may tell how far a command has come."""

_BREAKS = b" \t\r\n\"'"
"""Between words: output is cut only there, because nobody can hide half a secret."""
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours and the cursor
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles, links and other strings
    r"|[ -/]*[0-~])"
)
_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def plain(data: bytes) -> str:
    """The text that a person would see: no escapes or controls, and of a line that was written
    over, such as a progress bar, the last state."""
    text = _ESCAPES.sub("", data.decode("utf-8", errors="replace"))
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return "\n".join(lines).translate(_CONTROLS)


class Output:
    """The beginning and the end of a stream, whatever its length."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def add(self, data: bytes) -> None:
        self._seen += len(data)
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * TAIL:
            del self._tail[:-TAIL]

    def text(self) -> str:
        tail = bytes(self._tail[-TAIL:])
        if self._seen == len(self._head) + len(tail):
            return plain(bytes(self._head) + tail)
        head = bytes(self._head)
        head = head[: max(map(head.rfind, _BREAKS)) + 1]
        tail = tail[_first(_BREAKS, tail) :]
        note = f"\n\n[{self._seen - len(head) - len(tail)} bytes are left out here]\n\n"
        return plain(head) + note + plain(tail)

    def last_line(self) -> str:
        """Empty while it is too long to be looked at whole."""
        end = bytes(self._head[-LINE:] + self._tail[-LINE:])[-LINE:]
        if self._seen > len(end):
            end = end[_first(b"\r\n", end) :]
        return plain(end).rstrip().rpartition("\n")[2]


def _first(breaks: bytes, data: bytes) -> int:
    """Where the first of the bytes stands; the end where none does."""
    return min((at for one in breaks if (at := data.find(one)) >= 0), default=len(data))
