"""The status line: the model, and the share of its context window in use."""

from rich.cells import cell_len, set_cell_size

from hermes.control.context_use import ContextUse
from hermes.text.console import printable_line

SHORTEST_NAME = 8
"""If the line is too narrow for the whole name of the model, the name is cut to at least this
number of columns."""


def status_line(use: ContextUse, columns: int, hint: str = "") -> str:
    """Returns the status line with at most `columns` columns. If the line has no room for the hint,
    the hint is left out."""
    name = printable_line(use.model) or "no model"
    share = f" · context {_percent(use.share)} of {_short_count(use.window)}" if use.parts else ""
    behind = f" · {hint}" if hint else ""
    if cell_len(name) + len(share) + len(behind) <= columns:
        return name + share + behind
    room = max(columns - len(share), SHORTEST_NAME)
    if cell_len(name) > room:
        name = set_cell_size(name, room - 1).rstrip() + "…"
    return name + share


def _percent(share: float) -> str:
    return "<1%" if 0 < share < 0.01 else f"{share:.0%}"


def _short_count(count: int) -> str:
    if count < 1000:
        return str(count)
    if count < 1_000_000:
        return f"{count / 1000:.0f}k"
    return f"{count / 1_000_000:.1f}".removesuffix(".0") + "M"
