"""Replacing a piece of a text."""

import textwrap
import time

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermes.text.changes import (
    LONGEST_DIFF,
    MOST_DIFF_LINES,
    MOST_TOLERANT_LINES,
    apply_replacements,
    diff,
    find_replacements,
)

words = st.text(st.sampled_from("xy("), min_size=1, max_size=4)
code = st.lists(st.tuples(st.integers(0, 2), words), min_size=1, max_size=5).map(
    lambda lines: "\n".join("    " * depth + word for depth, word in lines)
)
pieces = st.text(st.sampled_from("ab \n\r\té"), max_size=12)


def changed(text: str, old: str, new: str) -> str:
    return apply_replacements(text, find_replacements(text, old, new))


@settings(deadline=None)
@given(pieces, pieces.filter(bool), pieces)
def test_an_exact_text_is_replaced_as_by_python(text: str, old: str, new: str) -> None:
    text, old, new = (one.replace("\r", "") for one in (text, old, new))
    if old and old in text:
        assert changed(text, old, new) == text.replace(old, new)


@settings(deadline=None)
@given(pieces, pieces.filter(bool), pieces)
def test_spots_are_pieces_in_order(text: str, old: str, new: str) -> None:
    last = 0
    for one in find_replacements(text, old, new):
        assert last <= one.start < one.end <= len(text)
        assert text[one.start : one.end].split() == old.split()
        last = one.end


@settings(deadline=None)
@given(code, code, st.sampled_from(["", "  ", "        ", "\t"]), st.booleans())
def test_a_block_is_found_and_replaced_at_any_indentation(
    old: str, new: str, indent: str, windows: bool
) -> None:
    old, new = textwrap.dedent(old), textwrap.dedent(new)
    newline = "\r\n" if windows else "\n"

    def file(block: str) -> str:
        inner = textwrap.indent(block, indent).replace("\n", newline)
        return f"begin:{newline}{inner}{newline}end{newline}"

    before = file(old)
    assume(not indent or old.replace("\n", newline) not in before)
    assert changed(before, f"{old}\n", f"{new}\n") == file(new)
    assert changed(before, old, new) == file(new)


@settings(deadline=None)
@given(code, code)
def test_a_block_that_was_given_too_far_to_the_right_is_moved_to_the_left(
    old: str, new: str
) -> None:
    old, new = textwrap.dedent(old), textwrap.dedent(new)
    deep = textwrap.indent(old, "        ")
    file = f"begin:\n{textwrap.indent(old, '  ')}\nend\n"
    wanted = f"begin:\n{textwrap.indent(new, '  ')}\nend\n"
    assert changed(file, deep, textwrap.indent(new, "        ")) == wanted


def test_a_line_further_left_than_the_old_ones_keeps_its_distance() -> None:
    assert changed("    x()\n", "        x()\n", "    if y:\n        x()\n") == "if y:\n    x()\n"


def test_spaces_behind_the_lines_do_not_matter() -> None:
    assert changed("a  \nb\t\nc\n", "a\nb", "x") == "x\nc\n"
    assert changed("a\nb\nc\n", "a  \nb  ", "x") == "x\nc\n"


def test_mixed_line_ends_are_found_and_the_other_lines_keep_theirs() -> None:
    assert changed("a\r\nb\nc\r\nd\r\n", "b\nc\n", "x\ny\n") == "a\r\nx\r\ny\r\nd\r\n"


def test_a_last_line_without_an_end_is_found() -> None:
    assert changed("a\n  b", "b\n", "c\n") == "a\n  c\n"
    assert changed("a\n  b", " b \n", "") == "a\n"


def test_tabs_take_the_place_of_spaces() -> None:
    assert changed("\ta\n\tb\n", "    a\n    b\n", "    c\n") == "\tc\n"


def test_other_words_and_other_shapes_are_not_found() -> None:
    assert find_replacements("a\n  b\n", "a\nb\n", "x") == []
    assert find_replacements("a b\n", "a  b\n", "x") == []
    assert find_replacements("a\n", "  \n ", "x") == []


def test_a_diff_shows_each_change_with_its_lines() -> None:
    before = "\n".join(str(number) for number in range(1, 31))
    after = before.replace("5\n", "five\n", 1).replace("20\n", "")
    assert diff(before, after).split("\n") == [
        "@@ -3,5 +3,5 @@",
        *(" 3", " 4", "-5", "+five", " 6", " 7"),
        "@@ -18,5 +18,4 @@",
        *(" 18", " 19", "-20", " 21", " 22"),
    ]


@settings(deadline=None)
@given(pieces, pieces)
def test_a_diff_tells_all_old_and_all_new_lines(before: str, after: str) -> None:
    shown = [line for line in diff(before, after).split("\n") if line and line[0] in "+-"]
    old, new = before.split("\n"), after.split("\n")
    taken = [line[1:] for line in shown if line[0] == "-"]
    put = [line[1:] for line in shown if line[0] == "+"]
    assert sorted(taken + new) == sorted(put + old)


def test_a_diff_is_never_long() -> None:
    many = "\n".join(f"{number} a rather long line" for number in range(MOST_DIFF_LINES))
    shown = diff(many, many.replace("line", "row"))
    assert shown.endswith("\n[more changes than are shown]")
    assert len(shown) <= LONGEST_DIFF + 40
    assert len(diff("x" * 100_000, "y" * 100_000)) < 1000


def test_changes_that_are_far_apart_are_not_shown() -> None:
    between = "x\n" * MOST_DIFF_LINES
    assert diff(f"a\n{between}a", f"b\n{between}b") == "[the changes are too far apart to be shown]"


def test_a_text_that_is_nearly_everywhere_is_looked_for_in_bounded_time() -> None:
    since = time.process_time()
    assert find_replacements("x\n" * 10_000, "x\n" * (MOST_TOLERANT_LINES - 1) + "y\n", "z") == []
    assert find_replacements("x \n" * 10_000, "x\n" * (MOST_TOLERANT_LINES + 1), "z") == []
    assert time.process_time() - since < 10
