"""The output of a command, as the text that a person would see in a terminal."""

import re

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours and the cursor
    r"|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles, links and other strings
    r"|[ -/]*[0-~])"
)
_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def console_text(data: bytes) -> str:
    """The output without escapes and control characters. Of a line that was overwritten, such as a
    progress bar, the last state is kept."""
    text = _ESCAPES.sub("", data.decode("utf-8", errors="replace"))
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return "\n".join(lines).translate(_CONTROLS)
