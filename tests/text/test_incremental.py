"""Markdown is parsed while the text grows."""

from collections.abc import Iterable

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.text.incremental import IncrementalMarkdown, IncrementalTree, Piece, pieces
from hermes.text.markdown import parse, parse_part, print_plain
from hermes.types import nodes

BITS = (
    "a", "b c", "#", "# ", "- ", "* ", "+ ", "1. ", "2) ", "10. ", "> ", "```", "~~~", "`", "**",
    "_", "|", "| a | b |", "|---|---|", "---", "===", "=", "  ", "    ", "\t", "\n", "\n\n", "[x]",
    "[x]: http://y", "(u)", "<b>", "\\", "1", "文", "🙂",
)  # fmt: skip
texts = st.lists(st.sampled_from(BITS), max_size=30).map("".join)


def grown(bits: Iterable[str]) -> list[Piece]:
    """Feeds the bits to the parser one after the other. Returns all pieces of the text. If the
    parser has returned a code block in several pieces, they are joined into one."""
    growing = IncrementalMarkdown()
    given: list[Piece] = []
    for bit in bits:
        growing.feed(bit)
        given += growing.settled()
    whole: list[Piece] = []
    for piece in [*given, *growing.open()]:
        if piece.shown:
            before = whole.pop()
            assert code(piece)[: piece.shown] == code(before)
            piece = replace(piece, gap=before.gap, shown=0)  # noqa: PLW2901
        whole.append(piece)
    return whole


def code(piece: Piece) -> list[str]:
    assert isinstance(piece.block, nodes.Fence)
    return piece.block.text.split("\n")


def words(blocks: Iterable[nodes.Block]) -> list[str]:
    return " ".join(print_plain((block,)) for block in blocks).split()


@given(texts)
def test_the_pieces_do_not_depend_on_how_the_text_arrives(text: str) -> None:
    assert grown(text) == pieces(text)


@given(texts, st.lists(st.integers(1, 9)))
def test_the_pieces_do_not_depend_on_the_chunk_size(text: str, sizes: list[int]) -> None:
    bits = []
    for size in sizes:
        bits.append(text[:size])
        text = text[size:]
    assert grown([*bits, text]) == pieces("".join(bits) + text)


@given(texts)
def test_the_pieces_contain_the_whole_text(text: str) -> None:
    assert words(piece.block for piece in pieces(text)) == words(parse_part(text))


def settled(text: str) -> list[Piece]:
    growing = IncrementalMarkdown()
    growing.feed(text)
    return growing.settled()


def test_a_paragraph_is_settled_when_another_block_begins() -> None:
    assert settled("one\ntwo\n") == []
    assert settled("one\n\n") == []
    assert [words([piece.block]) for piece in settled("one\n\ntwo\n")] == [["one"]]


def test_an_unfinished_line_settles_no_block() -> None:
    assert settled("a hashtag:\n#") == []
    assert settled("three stars:\n***") == []


def test_list_items_are_settled_one_by_one_with_rising_numbers() -> None:
    growing = IncrementalMarkdown()
    given: list[Piece] = []
    for line in ("1. one\n", "1. two\n", "   more\n", "1. three\n"):
        growing.feed(line)
        given += growing.settled()
    last = growing.open()
    assert [words([piece.block]) for piece in [*given, *last]] == [
        ["1.", "one"],
        ["2.", "two", "more"],
        ["3.", "three"],
    ]
    assert [len(given), len(last)] == [2, 1]


def test_code_lines_are_settled_as_soon_as_they_are_complete() -> None:
    growing = IncrementalMarkdown()
    growing.feed("```py\na = 1\nb")
    (first,) = growing.settled()
    assert (code(first), first.shown) == (["a = 1"], 0)
    assert [(code(piece), piece.shown) for piece in growing.open()] == [(["a = 1", "b"], 1)]
    growing.feed(" = 2\n```\nand on\n")
    (second,) = growing.settled()
    assert (code(second), second.shown) == (["a = 1", "b = 2"], 1)
    assert [words([piece.block]) for piece in growing.open()] == [["and", "on"]]


def test_blank_lines_are_kept_and_added_around_code() -> None:
    text = "intro:\n- a\n- b\n\n- c\n\nend\n```\nx\n```\nlast\n# title\n"
    assert [piece.gap for piece in pieces(text)] == [
        False, False, False, True, True, True, True, True,
    ]  # fmt: skip


def test_a_link_definition_is_shown_as_text() -> None:
    assert words(piece.block for piece in pieces("see [1]\n\n[1]: http://x.org\n")) == [
        "see",
        "[1]",
        "[1]:",
        "http://x.org",
    ]


@given(st.lists(st.sampled_from((*BITS, "\r", "\r\n", "[x\n]: /u")), max_size=30))
@example(["a", "\n", "#", "a"])
@example(["a", "\n", "|--|\n", "---", "a"])
def test_a_growing_text_has_the_same_tree_as_the_whole_text(bits: list[str]) -> None:
    growing = IncrementalTree()
    text = ""
    for bit in bits:
        text += bit
        assert growing.of(text) == parse(text)
    assert growing.of("# other") == parse("# other")
