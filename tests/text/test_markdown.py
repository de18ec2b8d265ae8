"""Markdown is parsed and printed without a change of its content."""

import string
import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermes.text.dialect import Dialect
from hermes.text.markdown import code_span, literal, parse, print_markdown, print_plain
from hermes.types.nodes import (
    Block,
    Break,
    Code,
    Document,
    Emphasis,
    Fence,
    Heading,
    Image,
    Inline,
    Inlines,
    Link,
    List,
    Paragraph,
    Quote,
    Rule,
    Strikethrough,
    Strong,
    Table,
    Text,
)

words = st.text(string.ascii_letters, min_size=1, max_size=6)
signs = st.text(string.printable.strip() + " é日", min_size=1, max_size=30).map(str.strip)


def spaced(inlines: list[Inline]) -> Inlines:
    """Puts a word between two pieces of markup, because adjacent pieces could be parsed in another
    way."""
    spread: list[Inline] = [Text(text="a ")]
    for inline in inlines:
        spread += [inline, Text(text=" b ")]
    return (*spread[:-1], Text(text=" c"))


def wrapped(inner: st.SearchStrategy[Inline]) -> st.SearchStrategy[Inline]:
    children = st.lists(inner, min_size=1, max_size=2).map(spaced)
    return st.one_of(
        children.map(lambda nodes: Strong(children=nodes)),
        children.map(lambda nodes: Emphasis(children=nodes)),
        children.map(lambda nodes: Strikethrough(children=nodes)),
    )


leaves: st.SearchStrategy[Inline] = st.one_of(
    st.text("ab` |*", min_size=1).filter(str.strip).map(lambda text: Code(text=text)),
    words.map(lambda word: Link(url=f"https://x.y/{word}_(_{word}_)", children=(Text(text=word),))),
    words.map(
        lambda word: Link(url=f"https://x.y/_{word}", children=(Text(text=f"https://x.y/_{word}"),))
    ),
    words.map(lambda word: Image(url=word, text=word)),
)
inlines = st.lists(st.recursive(leaves, wrapped, max_leaves=4), min_size=1, max_size=3).map(spaced)
lines = st.lists(inlines, min_size=1, max_size=3).map(
    lambda rows: tuple(node for row in rows for node in (*row, Break(hard=len(row) > 3)))[:-1]
)
flat: st.SearchStrategy[Block] = st.one_of(
    lines.map(lambda nodes: Paragraph(children=nodes)),
    st.builds(Heading, level=st.integers(1, 6), children=inlines),
    st.builds(
        Fence, text=st.text("ab`~\n #>-", max_size=20), info=st.sampled_from(["", "py", "a`b"])
    ),
    st.just(Rule()),
    st.builds(
        Table,
        aligns=st.just(("left", "", "center")),
        header=st.tuples(inlines, inlines, inlines),
        rows=st.lists(st.tuples(inlines, inlines, inlines), max_size=2).map(tuple),
    ),
)


def contained(inner: st.SearchStrategy[Block]) -> st.SearchStrategy[Block]:
    inside = st.lists(inner, min_size=1, max_size=2).map(apart)
    lists = st.builds(
        List,
        items=st.lists(
            st.tuples(lines.map(lambda nodes: Paragraph(children=nodes))), min_size=2
        ).map(tuple),
        start=st.sampled_from([None, 0, 1, 9]),
        tight=st.booleans(),
    )
    return st.one_of(inside.map(lambda blocks: Quote(children=blocks)), lists)


def apart(blocks: list[Block]) -> Document:
    """Puts a horizontal rule after each block, because two adjacent lists would be parsed as one
    list."""
    return tuple(block for block in blocks for block in (block, Rule()))


trees = st.lists(st.recursive(flat, contained, max_leaves=4), max_size=4).map(apart)


@settings(deadline=None)
@given(trees)
def test_rendered_markdown_parses_to_the_same_tree(tree: Document) -> None:
    assert parse(print_markdown(tree)) == tree


@settings(deadline=None)
@given(signs)
def test_special_characters_in_text_are_escaped_when_rendered(text: str) -> None:
    assume(text and "://" not in text)
    paragraph: Document = (Paragraph(children=(Text(text=text),)),)
    heading: Document = (Heading(level=2, children=(Text(text=text),)),)
    assert parse(print_markdown(paragraph)) == paragraph
    assert parse(print_markdown(heading)) == heading
    assert print_plain(paragraph) == text


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_can_be_parsed_and_printed(text: str) -> None:
    print_markdown(parse(text))
    print_plain(parse(text))


@settings(deadline=None)
@given(st.text("a*_~`[]()<>#-+1. \n|:!\\&", max_size=60))
def test_any_markup_can_be_parsed_and_printed(text: str) -> None:
    print_plain(parse(print_markdown(parse(text))))


def shown(text: str) -> tuple[str, str]:
    tree = parse(text)
    return print_markdown(tree), print_plain(tree)


@pytest.mark.parametrize(
    ("text", "markdown", "plain"),
    [
        ("", "", ""),
        ("Title\nof two\n===", "# Title of two", "Title of two"),
        ("# Hi #", "# Hi", "Hi"),
        ("__a__ _b_ ~~c~~ `d`", "**a** *b* ~~c~~ `d`", "a b c d"),
        ("    x\n    y", "```\nx\ny\n```", "x\ny"),
        ("~~~ a`b\nx\n~~~", "~~~a`b\nx\n~~~", "x"),
        ("* a\n* b\n\n  c", "- a\n\n- b\n\n  c", "- a\n\n- b\n\n  c"),
        ("3) a\n4) b", "3. a\n4. b", "3. a\n4. b"),
        ("- a\n  - b\n-\n- c", "- a\n  - b\n-\n- c", "- a\n  - b\n-\n- c"),
        ("> a\n>\n> b", "> a\n>\n> b", "> a\n>\n> b"),
        ("a|b\n-|-:\n1|`x\\|y`", "| a | b |\n| --- | --: |\n| 1 | `x\\|y` |", "a | b\n1 | x|y"),
        ("a\n\n---", "a\n\n***", "a\n\n———"),
        ("a  \nb\nc", "a\\\nb\nc", "a\nb\nc"),
        ("[a](<b c> 'title')", "[a](b%20c)", "a (b%20c)"),
        ("[](x) [a]()", "[](x) [a](<>)", "x a ()"),
        ("[x](u?a&amp;copy;)", "[x](u?a\\&copy;)", "x (u?a&copy;)"),
        ("![*a*](u)", "![a](u)", "a (u)"),
        ("<https://a.b/c> <m@b.c>", "https://a.b/c [m@b.c](mailto:m@b.c)", "https://a.b/c m@b.c"),
        ("<ftp://a.b>", "<ftp://a.b>", "ftp://a.b"),
        ("<b>x</b>", "\\<b>x\\</b>", "<b>x</b>"),
        ("- [ ] todo, 2 * 3, a_b", "- [ ] todo, 2 * 3, a_b", "- [ ] todo, 2 * 3, a_b"),
        ("a &#10; b", "a   b", "a   b"),
        ("[a](javascript:x)", "[a\\](javascript:x)", "[a](javascript:x)"),
    ],
)
def test_a_text_is_printed_in_both_dialects(text: str, markdown: str, plain: str) -> None:
    assert shown(text) == (markdown, plain)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("see https://x.y/_a_b, then", "https://x.y/_a_b"),
        ("(http://x.y/a_(b)_c)", "http://x.y/a_(b)_c"),
        ("**https://x.y**", "https://x.y"),
        ("https://x.y/?a=1&b=*2*!", "https://x.y/?a=1&b=*2"),
    ],
)
def test_a_bare_url_is_a_link_and_keeps_its_special_characters(text: str, url: str) -> None:
    link = Link(url=url, children=(Text(text=url),))
    assert repr(link) in repr(parse(text))


@pytest.mark.parametrize("text", ["http://", "http://...", "xhttp://a", "a://b", "a: b"])
def test_text_that_only_resembles_a_url_is_not_a_link(text: str) -> None:
    assert parse(text) == (Paragraph(children=(Text(text=text),)),)


def test_a_url_inside_a_link_is_the_text_of_the_link() -> None:
    link = Link(url="https://z", children=(Text(text="to https://x/_a_"),))
    assert parse("[to https://x/_a_](https://z)") == (Paragraph(children=(link,)),)


def test_a_dialect_changes_only_the_nodes_that_it_overrides() -> None:
    class Starred(Dialect):
        def strong(self, node: Strong) -> str:
            return f"*{self.inlines(node.children)}*"

    assert Starred().document(parse("- **a** `b`")) == "- *a* `b`"


@pytest.mark.parametrize(
    "text",
    [
        *("*" * 20_000 + "a" + "*" * 20_000, "> " * 5_000, "- " * 5_000, "http://" * 10_000),
        *("https://a.b/" + ")" * 50_000, "*a " * 3_000 + "a*" * 3_000, ":" * 50_000),
    ],
    ids=lambda text: repr(text[:12]),
)
def test_hostile_text_is_rendered_in_limited_time(text: str) -> None:
    began = time.monotonic()
    tree = parse(text)
    print_markdown(tree)
    print_plain(tree)
    assert time.monotonic() - began < 5


@given(
    st.text(st.characters(exclude_characters="\0")) | st.text(alphabet="a*_`~<>[]()#-\\\n &;1.:/")
)
def test_literal_text_is_shown_as_it_is(text: str) -> None:
    shown = " ".join(text.split())
    assert print_plain(parse(literal(text))) == shown


@pytest.mark.parametrize("text", ["deletes my_file", "rm -rf a", "2 * 3", "see https://a.example"])
def test_text_without_markup_needs_no_escapes(text: str) -> None:
    assert literal(text) == text


@given(st.text(alphabet="a*`[] \n\\", min_size=1))
def test_a_code_span_contains_exactly_its_text(text: str) -> None:
    assume(text.strip())
    line = text.replace("\n", " ")
    assert parse(f"in {code_span(text)} (x)") == (
        Paragraph(children=(Text(text="in "), Code(text=line), Text(text=" (x)"))),
    )
