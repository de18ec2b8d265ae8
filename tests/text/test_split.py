"""The parts fit and contain the whole text, for every dialect and every way of counting."""

import html
import re
import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from hermes.text.dialect import Dialect
from hermes.text.html_dialect import BrowserHtml
from hermes.text.markdown import parse, print_markdown, print_plain
from hermes.text.slices import visible
from hermes.text.split import Measure, Render, split, utf8_bytes, utf16_units
from hermes.types import nodes

LINES = (
    *("```", "```py", "````", "~~~ sh", "  ```js", "    ```", "> ```", "1. ```c", "- item"),
    *("", "A sentence. Another one! And more words", "> quoted", "# Title", "x" * 30, "* a\n  b"),
    *(
        "日本語。文です",
        "👍🏽👨\u200d👩 e\u0301",
        "<b> & </b> *c* \\* a_b",
        "**bold words** `co de`",
    ),
    *("[a link of words](http://x.y/z)", "| a | b |", "|---|---|", "| c d | e & f |", "7. seven"),
)
texts = st.one_of(
    st.text(max_size=300), st.lists(st.sampled_from(LINES), max_size=40).map("\n".join)
)


class Escaped(Dialect):
    """Escapes every special character with a backslash, as in Telegram's MarkdownV2."""

    def text(self, node: nodes.Text) -> str:
        return re.sub(r"([^\w\s])", r"\\\1", node.text)


RENDERS: dict[str, Render] = {
    "plain": print_plain,
    "markdown": print_markdown,
    "html": BrowserHtml().document,
    "escaped": Escaped().document,
}
MEASURES: dict[str, Measure] = {"characters": len, "utf-16": utf16_units, "bytes": utf8_bytes}
renders = st.sampled_from(sorted(RENDERS)).map(RENDERS.__getitem__)
measures = st.sampled_from(sorted(MEASURES)).map(MEASURES.__getitem__)


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def shown(text: str, limit: int, render: Render = print_plain, measure: Measure = len) -> list[str]:
    return [render(part) for part in split(parse(text), limit, render, measure)]


def code(text: str) -> str:
    return "\n".join(block.text for block in parse(text) if isinstance(block, nodes.Fence))


def text_of(page: str) -> str:
    """Returns the text of an HTML page without tags and white space."""
    return squeezed(html.unescape(re.sub(r"<[^>]*>", " ", page)))


@settings(deadline=None)
@given(texts, st.integers(40, 200), renders, measures)
@example("```py\n" + "a" * 50, 40, print_markdown, len)
@example("```\n" + "`" * 90, 40, print_markdown, len)
@example("| a | b |\n|---|---|\n" + "| some words | other words |\n" * 5, 60, print_markdown, len)
@example("> " * 40 + "some words", 40, print_markdown, len)
@example(f"[words](http://x.y/{'z' * 300})", 60, print_markdown, utf16_units)
@example("&" * 100, 40, RENDERS["html"], len)
@example("` `", 40, print_markdown, len)
def test_parts_fit_and_contain_the_whole_text_in_order(
    text: str, limit: int, render: Render, measure: Measure
) -> None:
    tree = parse(text)
    parts = list(split(tree, limit, render, measure))
    for part in parts:
        assert visible(part).strip()
        assert measure(render(part)) <= limit
    if measure(render(tree)) <= limit:
        assert len(parts) <= 1
    if not re.search(r"[\[\]|]", text):
        # Texts with links, images and tables are left out, because such markup is written as plain
        # text if it does not fit.
        assert squeezed("".join(map(visible, parts))) == squeezed(visible(tree))


@settings(deadline=None)
@given(texts, st.integers(80, 200), measures)
def test_the_text_of_the_rendered_parts_is_the_text_of_the_whole(
    text: str, limit: int, measure: Measure
) -> None:
    render = BrowserHtml().document
    tree = parse(text)
    assume(not any(isinstance(block, nodes.Rule) for block in tree))
    parts = [render(part) for part in split(tree, limit, render, measure)]
    assert "".join(map(text_of, parts)) == text_of(render(tree))


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(1, 60))
def test_only_white_space_is_lost_and_only_at_the_cuts(text: str, limit: int) -> None:
    tree = (nodes.Paragraph(children=(nodes.Text(text=text),)),)
    bodies = [print_plain(part) for part in split(tree, limit, print_plain, len)]
    assert re.fullmatch(r"\s*" + r"\s*".join(map(re.escape, bodies)) + r"\s*", text)


@settings(deadline=None)
@given(
    st.lists(st.from_regex(r"[a-z =]{0,24}[a-z]", fullmatch=True), min_size=1), st.integers(40, 90)
)
def test_code_that_is_cut_has_the_same_text(source: list[str], limit: int) -> None:
    text = "Look:\n\n```py\n" + "\n".join(source) + "\n```\n\nDone."
    cut = shown(text, limit, print_markdown)
    assert "\n".join(filter(None, map(code, cut))) == "\n".join(source)


def test_a_text_at_the_limit_is_not_split() -> None:
    text = "a\n\n" + "b" * 97
    assert shown(text, 100) == [text]
    assert len(shown(text + "c", 100)) == 2


def test_an_empty_tree_has_no_parts() -> None:
    assert shown("", 10) == []
    assert shown(" \n" * 50, 10) == []


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="limit is 0"):
        shown("a", 0)


def test_cuts_between_blocks_are_preferred_to_cuts_in_lines_and_sentences() -> None:
    assert shown("One. Two\nthree\n\nfour five", 20) == ["One. Two\nthree", "four five"]
    assert shown("One. Two\nthree four", 16) == ["One. Two", "three four"]
    assert shown("One two. Three four", 16) == ["One two.", "Three four"]
    assert shown("one two three", 9) == ["one two", "three"]
    assert shown("一二三。四五六七", 6) == ["一二三。", "四五六七"]


def test_a_block_is_not_cut_if_it_fits() -> None:
    fence = "```py\nprint(1)\nprint(2)\n```"
    assert shown("Some words before it.\n" + fence, 40, print_markdown) == [
        "Some words before it.",
        fence,
    ]


def test_links_and_code_are_not_cut_if_they_fit() -> None:
    assert shown("some words [of a link](u)", 22, print_markdown) == [
        "some words",
        "[of a link](u)",
    ]
    assert shown("some words `of some code`", 18, print_markdown) == [
        "some words",
        "`of some code`",
    ]


def test_a_cut_code_block_is_closed_and_opened_again_with_its_info_string() -> None:
    assert shown("```py x\none\ntwo\nthree\n```\nend", 24, print_markdown) == [
        "```py x\none\ntwo\n```",
        "```py x\nthree\n```\n\nend",
    ]


def test_a_long_line_of_code_is_cut_and_its_indent_is_kept() -> None:
    assert shown("```py\n" + "x" * 30 + "\n  y\n```", 30, print_markdown) == [
        "```py\n" + "x" * 20 + "\n```",
        "```py\n" + "x" * 10 + "\n  y\n```",
    ]


def test_a_code_block_in_a_quote_stays_in_the_quote() -> None:
    text = "> ```py\n" + "> some words of code\n" * 3 + "> ```"
    parts = shown(text, 40, print_markdown)
    assert len(parts) == 3
    assert set(parts) == {"> ```py\n> some words of code\n> ```"}


def test_a_character_of_several_code_points_is_not_cut() -> None:
    for whole in ("👍🏽", "e\u0301", "👨\u200d👩\u200d👧"):
        assert set(shown(whole * 20, 7)) == {whole * (7 // len(whole))} | {
            whole * (20 % (7 // len(whole)) or 7 // len(whole))
        }


def test_an_endless_combining_character_is_cut() -> None:
    assert shown("e" + "\u0301" * 99, 50) == ["e" + "\u0301" * 49, "\u0301" * 50]
    assert shown("e\u0301\u0301", 2) == ["e\u0301", "\u0301"]


def test_a_character_larger_than_the_limit_is_a_part_of_its_own() -> None:
    assert shown("a👍b", 1, measure=utf16_units) == ["a", "👍", "b"]
    assert shown("a<b", 3, BrowserHtml().document) == ["a", "&lt;", "b"]


def test_utf16_units_count_surrogates() -> None:
    assert utf16_units("a👍") == 3
    assert utf16_units("\ud83d") == 1


def test_markup_that_leaves_no_room_becomes_plain_text() -> None:
    table = "| a | b |\n|---|---|\n| one | two |"
    assert shown(table, 20, print_markdown) == ["a b\n\none two"]
    link = f"[words](http://x.y/{'z' * 60})"
    assert "".join(shown(link, 30, print_markdown)) == f"words(http://x.y/{'z' * 60})"
    quoted = shown("> " * 30 + "some words", 20, print_markdown)
    assert [part.strip("> ") for part in quoted] == ["some", "word", "s"]


def test_a_part_of_blank_code_lines_is_dropped() -> None:
    cut = shown("```\na\n" + "\n" * 60 + "b\n```", 20, print_markdown)
    assert [code(part).strip() for part in cut] == ["a", "b"]


HOSTILE = pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "word " * 20_000,
        "```py\na\n```\n" * 8_000,
        "```py\n~~~\n" * 10_000,
        "a *b* " * 5_000,
        "- a\n" * 5_000,
        "| a | b |\n|---|---|\n" + "| c | d |\n" * 2_000,
        ("[" * 99 + "\n") * 100,
    ],
    ids=lambda text: repr(text[:12]),
)


@HOSTILE
@pytest.mark.parametrize(("limit", "size"), [(3, 3_000), (40, 30_000), (4096, 100_000)])
def test_hostile_text_is_split_in_limited_time(text: str, limit: int, size: int) -> None:
    tree = parse(text[:size])
    began = time.process_time()
    parts = list(split(tree, limit, print_markdown, utf16_units))
    assert time.process_time() - began < 5
    assert max(utf16_units(print_markdown(part)) for part in parts) <= limit


def test_later_parts_are_not_rendered_before_they_are_requested() -> None:
    sizes: list[int] = []

    def render(tree: nodes.Document) -> str:
        text = print_plain(tree)
        sizes.append(len(text))
        return text

    next(split(parse("word " * 20_000), 100, render, len))
    assert sum(sizes) < 2_000
