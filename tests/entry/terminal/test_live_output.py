"""Permanent lines are written once, and the lines below them are redrawn."""

import os
from io import StringIO

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.text import Text

from hermes.entry.terminal.live_output import LiveOutput

line_lists = st.lists(st.text("ab 文", max_size=30), max_size=6)


class Sheet:
    """A `LiveOutput` whose output a terminal emulator displays."""

    def __init__(self, columns: int = 20, rows: int = 8) -> None:
        self.size = os.terminal_size((columns, rows))
        self.out = StringIO()
        self.page = LiveOutput(self.out, color=False, size=lambda: self.size)

    def draw(self, lines: list[str], tail: list[str]) -> None:
        self.page.draw([*map(Text, lines)], [*map(Text, tail)])

    def lines(self) -> list[str]:
        """Returns all lines, including lines that have scrolled away."""
        screen = pyte.HistoryScreen(*self.size, history=1000)
        pyte.Stream(screen).feed(self.out.getvalue().replace("\n", "\r\n"))
        columns = range(screen.columns)
        gone = ["".join(row[column].data for column in columns) for row in screen.history.top]
        return "\n".join(row.rstrip() for row in [*gone, *screen.display]).rstrip().split("\n")


def test_permanent_lines_replace_the_tail() -> None:
    sheet = Sheet()
    sheet.draw([], ["thinking"])
    sheet.draw(["one"], ["two gr"])
    sheet.draw([], ["two grows"])
    sheet.draw(["two grows up"], [])
    assert sheet.lines() == ["one", "two grows up"]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(line_lists, line_lists), max_size=8))
def test_each_permanent_line_is_shown_once_with_any_tail(
    frames: list[tuple[list[str], list[str]]],
) -> None:
    sheet, plain = Sheet(), Sheet()
    for lines, tail in frames:
        sheet.draw(lines, tail)
        plain.draw(lines, [])
    sheet.draw([], [])
    assert sheet.lines() == plain.lines()


def test_a_tail_higher_than_the_screen_shows_its_end() -> None:
    sheet = Sheet(rows=5)
    tail = [f"row {number}" for number in range(20)]
    sheet.draw(["above"], tail)
    sheet.draw([], [*tail, "row 20"])
    assert sheet.lines() == ["above", "row 17", "row 18", "row 19", "row 20"]
    sheet.draw(["done"], [])
    assert sheet.lines() == ["above", "done"]


def test_unchanged_lines_are_not_written_again() -> None:
    sheet = Sheet()
    sheet.draw(["one"], ["two"])
    written = sheet.out.getvalue()
    sheet.draw([], ["two"])
    assert sheet.out.getvalue() == written


def test_a_narrower_terminal_breaks_the_tail_into_more_rows() -> None:
    sheet = Sheet(columns=20)
    sheet.draw([], ["a" * 15, "b" * 5])
    sheet.size = os.terminal_size((10, 8))
    sheet.draw([], ["c"])
    assert sheet.out.getvalue().endswith("\r\x1b[2A\x1b[Jc")


def test_notes_are_written_once_above_the_next_drawing() -> None:
    sheet = Sheet()
    sheet.draw([], ["tail"])
    sheet.page.note("the disk is full")
    sheet.draw(["words"], ["tail"])
    sheet.draw([], ["tail"])
    assert sheet.lines() == ["the disk is full", "words", "tail"]
