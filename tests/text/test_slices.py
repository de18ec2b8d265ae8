"""A tree is cut into two parts, which together have the whole content of the tree."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.markdown import parse, print_markdown
from hermes.text.slices import VisibleText, append_text, drop_first, take_first, visible
from hermes.types.nodes import Document

LINES = (
    *("", "Some *words* and **more `code` words**.", "# Title", "> quoted", "> > twice", "- item"),
    *("  - nested", "1. one", "2. two", "```py", "```", "    indented", "[a link](http://x.y)"),
    *("![picture](http://x.y)", "| a | b |", "|---|---|", "| c |  |", "---", "[](http://x.y)"),
    *("日本語。文です", "👍🏽 e\u0301"),
)
trees = st.lists(st.sampled_from(LINES), max_size=20).map("\n".join).map(parse)


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


@given(trees, st.integers(1, 60))
def test_the_beginning_and_the_rest_together_are_the_whole_tree(tree: Document, count: int) -> None:
    text = visible(tree)
    begun, whole = take_first(tree, count)
    rest = drop_first(tree, count)
    assert squeezed(visible(begun)) == squeezed(text[:count])
    assert squeezed(visible(rest)) == squeezed(text[count:])
    assert whole or count < len(text) or not squeezed(text[count:])
    assert not whole or begun == tree


@given(trees, st.integers(1, 60))
def test_visible_text_stops_at_the_requested_length(tree: Document, stop: int) -> None:
    text = visible(tree)
    outline = VisibleText(tree, stop)
    assert outline.text == text[:stop]
    assert len(outline.kinds) == len(outline.text)


def beginning(text: str, count: int) -> str:
    return print_markdown(take_first(parse(text), count)[0])


def rest(text: str, count: int) -> str:
    return print_markdown(drop_first(parse(text), count))


@pytest.mark.parametrize(
    ("text", "count", "before", "after"),
    [
        ("one **two three** four", 8, "one **two **", "**three** four"),
        ("one\n\ntwo", 3, "one", "two"),
        ("# one two", 3, "# one", "#  two"),
        ("> one two\n>\n> three", 4, "> one ", "> two\n>\n> three"),
        ("```py\nab\ncd\n```", 2, "```py\nab\n```", "```py\n\ncd\n```"),
        ("[one two](http://x.y)", 3, "[one](http://x.y)", "[ two](http://x.y)"),
        ("a ![p](http://x.y) b", 3, "a ![p](http://x.y)", " b"),
        ("a\n\n---\n\nb", 3, "a\n\n***", "b"),
    ],
)
def test_markup_is_kept_on_both_sides(text: str, count: int, before: str, after: str) -> None:
    assert (beginning(text, count), rest(text, count)) == (before, after)


def test_a_cut_list_continues_its_numbers_and_the_rest_of_an_item_has_no_number() -> None:
    text = "3. one two\n4. three\n5. four"
    assert (beginning(text, 4), rest(text, 4)) == ("3. one", "two\n\n4. three\n5. four")
    assert (beginning(text, 8), rest(text, 8)) == ("3. one two", "4. three\n5. four")


def test_a_cut_table_continues_without_its_header_in_the_same_columns() -> None:
    text = "| a | b |\n|---|--:|\n| c | d |\n| e | f |"
    assert beginning(text, 3) == "| a | b |\n| --- | --: |"
    assert rest(text, 4) == "|  |  |\n| --- | --: |\n| c | d |\n| e | f |"
    assert rest(text, 6) == "|  |  |\n| --- | --: |\n|  | d |\n| e | f |"


def test_white_space_in_code_is_not_dropped_at_a_cut() -> None:
    outline = VisibleText(parse("a ` b` c\n\n```\n d\n```"))
    droppable = [index for index in range(len(outline.text)) if outline.is_space(index)]
    assert [outline.kinds[index] for index in droppable] == ["word", "word", "block"]


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("", "…"),
        ("one **two**", "one **two** …"),
        ("# one", "# one …"),
        ("> one", "> one …"),
        ("- a\n- b", "- a\n- b …"),
        ("```\na\n```", "```\na\n```\n\n…"),
        ("---", "***\n\n…"),
    ],
)
def test_a_text_is_added_after_the_last_words(text: str, ended: str) -> None:
    tree = parse(text)
    assert print_markdown(append_text(tree, " …")) == ended
    assert append_text(tree, "") == tree
