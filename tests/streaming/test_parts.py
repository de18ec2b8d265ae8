"""A delivery is split into the right messages."""

import pytest
from msgspec.structs import replace

from hermes.streaming.parts import MessagePart, parts_of, plain_parts, tree_of
from hermes.testing.platforms import LIMIT, ChatServer, PlainAdapter, RichAdapter
from hermes.text.markdown import parse, print_plain
from hermes.types.messages import Attachment, Choices, Content
from hermes.types.platforms import PlatformLimits

TEA = Choices(question="q1", prompt="Tea?", labels=("yes", "no"), text="Tea? Reply.")
NAME = Choices(question="q2", prompt="Name?", labels=(), text="Name? Reply.")
FILE = Attachment(kind="file", path="/tmp/some/a.txt")

plain, rich = PlainAdapter(ChatServer()), RichAdapter(ChatServer())


def texts(content: Content, adapter: PlainAdapter) -> list[str]:
    return [print_plain(part.tree) for part in parts_of(content, adapter)]


def test_text_is_sent_before_questions_and_questions_before_files() -> None:
    content = Content(text="Well.", attachments=(FILE,), choices=(TEA, NAME))
    parts = parts_of(content, rich)
    assert [print_plain(part.tree) for part in parts] == ["Well.\n\nName? Reply.", "Tea?", ""]
    assert [part.choices for part in parts] == [None, TEA, None]
    assert [part.attachment for part in parts] == [None, None, FILE]


def test_a_platform_without_buttons_and_files_gets_text_instead() -> None:
    content = Content(text="Well.", attachments=(FILE,), choices=(TEA, NAME))
    assert texts(content, plain) == [
        "Well.\n\nTea? Reply.\n\nName? Reply.\n\n(a.txt can't be sent here.)"
    ]


def test_the_hint_is_between_the_question_and_its_buttons() -> None:
    hinted = replace(TEA, hint="Or say so.")
    (part,) = parts_of(Content(text="", choices=(hinted,)), rich)
    assert (print_plain(part.tree), part.choices) == ("Tea?\n\nOr say so.", hinted)
    assert texts(Content(text="", choices=(hinted,)), plain) == ["Tea? Reply."]


def test_a_question_with_an_outcome_is_the_same_message_without_buttons() -> None:
    decided = replace(TEA, prompt="Tea? Yes.", text="Tea? Yes.", outcome="Yes.")
    parts = parts_of(Content(text="Well.", choices=(decided, NAME)), rich)
    assert [print_plain(part.tree) for part in parts] == ["Well.\n\nName? Reply.", "Tea? Yes."]
    assert [part.choices for part in parts] == [None, None]


def test_a_question_with_too_many_buttons_is_sent_as_text() -> None:
    class TwoButtons(RichAdapter):
        limits = PlatformLimits(text=LIMIT, buttons=2)

    adapter = TwoButtons(ChatServer())
    many = Choices(question="q", prompt="Which?", labels=("a", "b", "c"), text="a, b or c?")
    assert texts(Content(text="", choices=(many, TEA)), adapter) == ["a, b or c?", "Tea?"]


def test_the_last_part_of_a_long_question_has_the_buttons() -> None:
    long = Choices(question="q", prompt="word " * 1000, labels=("a",), text="")
    parts = parts_of(Content(text="", choices=(long,)), rich)
    assert [part.choices for part in parts] == [None, long]


def test_buttons_without_a_question_get_a_text() -> None:
    bare = Choices(question="q", prompt="", labels=("a",), text="a?")
    assert texts(Content(text="", choices=(bare,)), rich) == ["?"]


def test_empty_content_has_no_messages() -> None:
    assert parts_of(Content(text=" \n"), plain) == []


@pytest.mark.parametrize("text", ["[1]: http://x.y", "`" * 50, "> > ", "```\n```"])
def test_markdown_without_visible_text_is_shown_as_plain_text(text: str) -> None:
    assert print_plain(tree_of(text)) == text.strip()


def test_other_markdown_is_parsed() -> None:
    assert tree_of("**a**") == parse("**a**")
    assert tree_of("") == ()


def test_plain_parts_fit_in_every_unit_and_the_buttons_are_below_the_last_one() -> None:
    class Short(RichAdapter):
        limits = PlatformLimits(text=20, buttons=8)

    part = MessagePart(tree=parse("[日本語の文](http://x.y) **and some more**"), choices=TEA)
    parts = plain_parts(part, Short(ChatServer()))
    shown = [print_plain(one.tree) for one in parts]
    assert all(len(text.encode()) <= 20 for text in shown)
    assert "".join(shown).replace(" ", "") == "日本語の文(http://x.y)andsomemore"
    assert [one.choices for one in parts] == [*[None] * (len(parts) - 1), TEA]
    assert all(one.plain for one in parts)
