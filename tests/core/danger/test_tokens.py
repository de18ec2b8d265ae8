"""The tokens of a command other than plain words: blanks, comments, keywords, assignments and
redirections."""

import pytest

from hermes.core.danger.parsing import parse_from
from hermes.core.danger.syntax import Assignment, LiteralText, NotParsed, Redirection
from hermes.core.danger.tokens import MAX_HERE_DOCUMENTS, TokenReader
from hermes.core.danger.words import WordReader


def tokens(text: str) -> TokenReader:
    return TokenReader(WordReader(text, parse_from, 0))


def test_blanks_and_comments_are_skipped() -> None:
    reader = tokens(" \t\\\n # comment\nls")
    reader.skip()
    assert reader.reader.peek() == "\n"
    reader.skip(lines=True)
    assert reader.reader.peek(2) == "ls"


def test_a_keyword_is_a_whole_word() -> None:
    assert tokens("if a").keyword() == "if"
    assert tokens("iffy").keyword() == ""
    assert tokens("{ a").keyword() == "{"
    assert tokens("{a,b}").keyword() == ""


def test_assignments_are_read() -> None:
    assert tokens("x=a b").assignment() == Assignment(name="x", value=(LiteralText(text="a"),))
    items = tokens("x+=(a\nb)").assignment()
    assert items == Assignment(
        name="x", items=((LiteralText(text="a"),), (LiteralText(text="b"),)), append=True
    )
    assert tokens("a b=c").assignment() is None


def test_redirections_are_read_with_their_descriptors() -> None:
    found = tokens("2>&1 < in").redirections()
    assert found == [
        Redirection(operator=">&", target=(LiteralText(text="1"),), descriptor="2"),
        Redirection(operator="<", target=(LiteralText(text="in"),)),
    ]


def test_a_redirection_needs_a_target() -> None:
    with pytest.raises(NotParsed):
        tokens("> ;").redirections()


def test_the_number_of_here_documents_is_limited() -> None:
    text = "cat <<E\nE\n"
    parse_from(tokens(text * MAX_HERE_DOCUMENTS).reader, "")
    with pytest.raises(NotParsed):
        parse_from(tokens(text * (MAX_HERE_DOCUMENTS + 1)).reader, "")
