"""What a command prints, as text, and never more of it than fits."""

import re

HEAD = TAIL = 100_000
"""Bytes that are kept of the beginning and of the end."""
LINE = 200
"""Characters of a line that tells how far a command has come."""

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
        tail = self._tail[-TAIL:]
        dropped = self._seen - len(self._head) - len(tail)
        if not dropped:
            return plain(bytes(self._head + tail))
        note = f"\n\n[{dropped} bytes are left out here]\n\n"
        return plain(bytes(self._head)) + note + plain(bytes(tail))

    def last_line(self) -> str:
        end = (self._tail or self._head)[-4 * LINE :]
        return plain(bytes(end)).rstrip().rpartition("\n")[2][:LINE]
