"""A passage of a text is found and replaced."""

import textwrap
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermes.text.changes import (
    LONGEST_DIFF,
    MOST_DIFF_LINES,
    MOST_TOLERANT_LINES,
    SHORT_DIFF_LINES,
    SHORT_DIFF_WIDTH,
    apply_replacements,
    diff,
    find_replacements,
    short_diff,
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
def test_an_exact_match_is_replaced_like_str_replace(text: str, old: str, new: str) -> None:
    text, old, new = (one.replace("\r", "") for one in (text, old, new))
    if old and old in text:
        assert changed(text, old, new) == text.replace(old, new)


@settings(deadline=None)
@given(pieces, pieces.filter(bool), pieces)
def test_replacements_are_in_order_and_do_not_overlap(text: str, old: str, new: str) -> None:
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
def test_a_replacement_that_is_indented_too_far_is_moved_to_the_left(old: str, new: str) -> None:
    old, new = textwrap.dedent(old), textwrap.dedent(new)
    deep = textwrap.indent(old, "        ")
    file = f"begin:\n{textwrap.indent(old, '  ')}\nend\n"
    wanted = f"begin:\n{textwrap.indent(new, '  ')}\nend\n"
    assert changed(file, deep, textwrap.indent(new, "        ")) == wanted


def test_a_line_that_is_indented_less_than_the_old_lines_keeps_its_distance() -> None:
    assert changed("    x()\n", "        x()\n", "    if y:\n        x()\n") == "if y:\n    x()\n"


def test_trailing_white_space_is_ignored() -> None:
    assert changed("a  \nb\t\nc\n", "a\nb", "x") == "x\nc\n"
    assert changed("a\nb\nc\n", "a  \nb  ", "x") == "x\nc\n"


def test_mixed_line_endings_match_and_the_other_lines_keep_theirs() -> None:
    assert changed("a\r\nb\nc\r\nd\r\n", "b\nc\n", "x\ny\n") == "a\r\nx\r\ny\r\nd\r\n"


def test_a_last_line_without_a_newline_is_found() -> None:
    assert changed("a\n  b", "b\n", "c\n") == "a\n  c\n"
    assert changed("a\n  b", " b \n", "") == "a\n"


def test_tabs_replace_spaces_in_the_indentation() -> None:
    assert changed("\ta\n\tb\n", "    a\n    b\n", "    c\n") == "\tc\n"


def test_lines_with_other_words_or_another_layout_do_not_match() -> None:
    assert find_replacements("a\n  b\n", "a\nb\n", "x") == []
    assert find_replacements("a b\n", "a  b\n", "x") == []
    assert find_replacements("a\n", "  \n ", "x") == []


def test_a_diff_shows_each_change_with_its_line_numbers() -> None:
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
def test_a_diff_contains_all_old_and_all_new_lines(before: str, after: str) -> None:
    shown = [line for line in diff(before, after).split("\n") if line and line[0] in "+-"]
    old, new = before.split("\n"), after.split("\n")
    taken = [line[1:] for line in shown if line[0] == "-"]
    put = [line[1:] for line in shown if line[0] == "+"]
    assert sorted(taken + new) == sorted(put + old)


def test_the_length_of_a_diff_is_limited() -> None:
    many = "\n".join(f"{number} a rather long line" for number in range(MOST_DIFF_LINES))
    shown = diff(many, many.replace("line", "row"))
    assert shown.endswith("\n[more changes than are shown]")
    assert len(shown) <= LONGEST_DIFF + 40
    assert len(diff("x" * 100_000, "y" * 100_000)) < 1000


def test_changes_that_are_far_apart_are_not_shown() -> None:
    between = "x\n" * MOST_DIFF_LINES
    assert diff(f"a\n{between}a", f"b\n{between}b") == "[the changes are too far apart to be shown]"


def test_a_short_diff_shows_the_first_lines_and_how_many_follow() -> None:
    assert short_diff("a\nb\nc\n", "a\nB\nc\n") == "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"
    assert short_diff("", "a\n") == "@@ -1,0 +1,1 @@\n+a"
    new = "".join(f"{number}\n" for number in range(100))
    lines = short_diff("", new).split("\n")
    assert lines[1] == "+0"
    assert lines[SHORT_DIFF_LINES:] == [f"… {101 - SHORT_DIFF_LINES} more lines"]
    assert len(short_diff("", "x" * 10_000).split("\n")[1]) == SHORT_DIFF_WIDTH


def test_a_short_diff_of_a_long_rewrite_compares_no_lines() -> None:
    old = "".join(f"old {number}\n" for number in range(20 * MOST_DIFF_LINES))
    since = time.process_time()
    assert short_diff(old, old.replace("old", "new")).split("\n")[1] == "-old 0"
    assert time.process_time() - since < 2


@pytest.mark.parametrize(("before", "after"), [("", ""), ("a\n", "a\n"), ("a\n", "a")])
def test_texts_with_the_same_lines_have_no_short_diff(before: str, after: str) -> None:
    assert short_diff(before, after) == ""


def test_a_text_with_many_near_matches_is_searched_in_limited_time() -> None:
    since = time.process_time()
    assert find_replacements("x\n" * 10_000, "x\n" * (MOST_TOLERANT_LINES - 1) + "y\n", "z") == []
    assert find_replacements("x \n" * 10_000, "x\n" * (MOST_TOLERANT_LINES + 1), "z") == []
    assert time.process_time() - since < 10
