"""Markdown is shown with styles in a terminal."""

from io import StringIO

import pytest
from rich.cells import cell_len
from rich.console import Console

from hermes.entry.terminal.markdown import CONTEXT, render
from hermes.text.incremental import IncrementalMarkdown, pieces


def shown(text: str, width: int = 40, *, color: bool = False) -> str:
    out = StringIO()
    console = Console(
        file=out,
        width=width,
        highlight=False,
        force_terminal=color,
        color_system="standard" if color else None,
    )
    for piece in pieces(text):
        console.print(render(piece))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("# A *title*", "A title"),
        ("one\ntwo", "one\ntwo"),
        ("**bold** _em_ ~~gone~~ `x=1`", "bold em gone x=1"),
        ("- a\n- b\n  - c\n", "• a\n• b\n  • c"),
        ("3. a\n3. b\n", "3. a\n4. b"),
        ("> said\n> > twice", "▌ said\n▌\n▌ ▌ twice"),
        ("[name](http://x.org) http://y.org", "name (http://x.org) http://y.org"),
        ("![a cat](http://x.org/c.png)", "a cat (http://x.org/c.png)"),
        ("```\na\n\n  b\n```", "  a\n\n    b"),
        ("<b>tags</b> are text", "<b>tags</b> are text"),
        ("---", "─" * 40),
        ("- a\n\n  b\n", "• a\n\n  b"),
    ],
)
def test_each_kind_of_block_has_its_own_style(text: str, wanted: str) -> None:
    assert shown(text) == wanted


def test_formatting_is_visible() -> None:
    assert shown("**loud**", color=True) == "\x1b[1mloud\x1b[0m"
    assert "\x1b[1;36mcode\x1b[0m" in shown("`code`", color=True)


def test_code_is_colored_only_if_its_language_is_known() -> None:
    assert "\x1b[94mdef\x1b[0m" in shown("```py\ndef f(): pass\n```", color=True).replace(";49", "")
    for language in ("", "no-such-language"):
        plain = shown(f"```{language}\ndef f(): pass\n```", color=True).replace("\x1b[0m", "")
        assert "\x1b[9" not in plain


@pytest.mark.parametrize("count", [CONTEXT // 10, CONTEXT + 10])
def test_lines_of_code_that_arrive_later_are_colored_in_the_same_way(count: int) -> None:
    inside = [f"if line {number}" for number in range(CONTEXT // 10)]
    lines = [*(f"x{number} = {number}" for number in range(count)), '"""', *inside, '"""']
    text = "```py\n" + "\n".join(lines) + "\n```\n"
    growing, found = IncrementalMarkdown(), []
    for line in text.splitlines(keepends=True):
        growing.feed(line)
        found += growing.settled()
    out = StringIO()
    console = Console(file=out, width=40, force_terminal=True, color_system="standard")
    for piece in found + growing.open():
        console.print(render(piece))
    assert [line.rstrip() for line in out.getvalue().splitlines()] == shown(
        text, color=True
    ).splitlines()


def test_long_text_is_broken_between_words_and_indented() -> None:
    assert shown("- one two three four", width=12) == "• one two\n  three four"
    assert shown("> one two three four", width=12) == "▌ one two\n▌ three four"


def test_a_table_is_aligned_with_wide_characters() -> None:
    text = "| a | 数 |\n|---|--:|\n| 漢字 | 1 |\n| 🙂 | 22 |\n"
    lines = shown(text).splitlines()
    assert [line.split() for line in lines[::2]] == [["a", "数"], ["漢字", "1"]]
    assert {cell_len(line) for line in lines} == {9}


def test_a_table_fits_a_narrow_terminal() -> None:
    cell = "many words that can't stand in one line"
    text = f"| a | b |\n|---|---|\n| {cell} | {cell} |\n"
    lines = shown(text, width=30).splitlines()
    assert max(map(len, lines)) <= 30
    assert " ".join("".join(lines).split()).count("words") == 2
