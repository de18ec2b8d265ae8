"""Makes docs/images/terminal.svg from a real session with a scripted model."""

import re
import subprocess
import sys
import tempfile
from io import StringIO
from itertools import groupby
from pathlib import Path

import msgspec
from pyte.screens import Char
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI
from rich.text import Text

from hermes.settings import ENVIRON
from hermes.testing.scripted import Plan, PlannedCall
from hermes.testing.terminal import Terminal

IMAGE = Path(__file__).parent / "images" / "terminal.svg"
COLUMNS, ROWS = 84, 36
LIST = "Water the tomatoes\nMend the fence\nBuy 12 packets of beans and 40 of peas\n"
PRICES = "seeds,price\nbeans,2\npeas,1\n"
QUESTION = "I have the peas. Correct @todo.txt, and add up the rest from prices.csv."
ANSWER = """\
The list has **two jobs and one errand** left:

| Seeds | Packets | Each |  Sum |
|-------|--------:|-----:|-----:|
| beans |      12 | `$2` | `$24` |

To check it:

```python
def total(packets: int, price: float) -> float:
    return packets * price
```

> The fence can wait until Sunday.
"""
PATCH = {
    "path": "todo.txt",
    "old": "Buy 12 packets of beans and 40 of peas",
    "new": "Buy 12 packets of beans",
}
PLANS = (
    Plan(calls=(PlannedCall("read_file", '{"path": "prices.csv"}'),)),
    Plan(calls=(PlannedCall("patch", msgspec.json.encode(PATCH).decode()),)),
    Plan(text=ANSWER, delay=0.01),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        folder = root / "garden"
        folder.mkdir()
        (folder / "todo.txt").write_text(LIST)
        (folder / "prices.csv").write_text(PRICES)
        plans = root / "plans.json"
        plans.write_bytes(msgspec.json.encode(PLANS))
        command = [sys.executable, "-m", "hermes.testing.model", "--script", str(plans)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as model:  # noqa: S603
            assert model.stdout
            try:
                cells = session(root, folder, model.stdout.readline().rpartition(" ")[2].strip())
            finally:
                model.terminate()
    IMAGE.parent.mkdir(exist_ok=True)
    IMAGE.write_text(svg(cells), "utf-8")


def session(root: Path, folder: Path, model_url: str) -> list[list[Char]]:
    """Returns the screen of a session: a question with a file, two tool calls, the answer, and a
    command that is being typed."""
    environ = {
        "PATH": ENVIRON["PATH"],
        "HOME": str(root),
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "HERMES_HOME": str(root / ".hermes"),
        "HERMES_CUSTOM_BASE_URL": model_url,
        "HERMES_MODEL": "scripted",
    }
    command = [sys.executable, "-m", "hermes", "chat"]
    with Terminal(command, environ, folder, COLUMNS, ROWS) as terminal:
        terminal.until(lambda: terminal.row == "›")
        terminal.send(f"{QUESTION}\r")
        terminal.until("tokens in")
        terminal.until(lambda: terminal.row == "›")
        terminal.send("/st")
        terminal.until("show what the agent is doing")
        height = len("\n".join(terminal.lines).rstrip().split("\n"))
        return terminal.cells[:height]


def svg(cells: list[list[Char]]) -> str:
    console = Console(file=StringIO(), record=True, width=COLUMNS, force_terminal=True)
    for row in cells:
        line = Text()
        for look, run in groupby(row, style):
            line.append("".join(cell.data for cell in run), look)
        line.rstrip()
        console.print(line)
    return image(console, "hermes chat")


def image(console: Console, title: str) -> str:
    """Returns an SVG image of the output that the console has recorded."""
    picture = console.export_svg(title=title, theme=MONOKAI, unique_id="hermes")
    # The reference to a web font is removed, so that a browser that shows the picture loads nothing
    # from the web.
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


def style(cell: Char) -> Style:
    faint = cell.fg == "brightblack"
    color = cell.fg.replace("brown", "yellow").replace("bright", "bright_")
    return Style(
        color=None if faint or color == "default" else color,
        dim=faint,
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        reverse=cell.reverse,
    )


if __name__ == "__main__":
    main()
