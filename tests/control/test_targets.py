"""Targets are parsed and formatted. The error for a wrong target says what to write instead."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.control.targets import (
    BadTarget,
    ChatTarget,
    HomeTarget,
    NamedTarget,
    OriginTarget,
    TargetGrammar,
    TargetPlatform,
    TargetSpec,
)
from hermes.entry.platforms.telegram.manifest import TELEGRAM
from hermes.types.identity import ChatRef

ACCOUNTS = ("telegram", "telegram.support")
GRAMMAR = TargetGrammar(
    [
        TargetPlatform(name="telegram", accounts=ACCOUNTS, refs=TELEGRAM.refs),
        TargetPlatform(name="letters", accounts=("letters.home",)),
        TargetPlatform(name="pigeons", accounts=("pigeons.a", "pigeons.b")),
        TargetPlatform(name="fax", accounts=()),
    ]
)


def at(chat: str, thread: str | None = None, account: str = "telegram") -> ChatTarget:
    return ChatTarget(account=account, chat=ChatRef(chat_id=chat, thread_id=thread))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("origin", [OriginTarget()]),
        ("Telegram", [HomeTarget(account="telegram")]),
        ("telegram.support", [HomeTarget(account="telegram.support")]),
        ("telegram:-1001234567890", [at("-1001234567890")]),
        ("telegram:-100:17", [at("-100", "17")]),
        ("telegram.support:@news", [at("@news", account="telegram.support")]),
        ("telegram:Family", [NamedTarget(account="telegram", name="Family")]),
        ("telegram:#12", [NamedTarget(account="telegram", name="12")]),
        ("telegram: Our house: talk ", [NamedTarget(account="telegram", name="Our house: talk")]),
        ("letters:Grandma", [NamedTarget(account="letters.home", name="Grandma")]),
        ("origin, telegram:7,", [OriginTarget(), at("7")]),
        (r"telegram:A\, B,origin", [NamedTarget(account="telegram", name="A, B"), OriginTarget()]),
    ],
)
def test_each_form_of_a_target_is_read(text: str, found: list[TargetSpec]) -> None:
    assert GRAMMAR.parse(text) == found


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "No target is named. Write telegram for its home chat, or telegram:-1001234567890"),
        (" , ", "No target is named."),
        ("telegrm:7", "'telegrm' is no platform: did you mean 'telegram'?"),
        ("xyzzy", "'xyzzy' is no platform. Write telegram"),
        ("telegram:", "The target 'telegram:' names no chat. Write telegram for its home chat"),
        ("fax:1", "fax is not configured: set its credentials"),
        ("pigeons:1", "pigeons has no default account: name one of pigeons.a, pigeons.b."),
    ],
)
def test_a_wrong_target_says_what_to_write(text: str, advice: str) -> None:
    with pytest.raises(BadTarget) as caught:
        GRAMMAR.parse(text)
    assert str(caught.value).startswith(advice)


def test_without_platforms_there_is_no_target() -> None:
    with pytest.raises(BadTarget, match="No chat platform is configured"):
        TargetGrammar([]).parse("telegram:7")


accounts = st.sampled_from((*ACCOUNTS, "letters.home"))
names = st.text(min_size=1).map(str.strip).filter(bool)
numbers = st.integers(0, 2**52).map(str)
telegram_chats = st.builds(
    ChatRef,
    chat_id=st.one_of(
        st.integers(-(2**52), 2**52).map(str),
        st.from_regex(r"@[A-Za-z][A-Za-z0-9_]{1,31}", fullmatch=True),
    ),
    thread_id=st.none() | numbers,
)
specs: st.SearchStrategy[TargetSpec] = st.one_of(
    st.just(OriginTarget()),
    st.builds(HomeTarget, account=accounts),
    st.builds(NamedTarget, account=accounts, name=names),
    st.builds(ChatTarget, account=st.sampled_from(ACCOUNTS), chat=telegram_chats),
)


@given(st.lists(specs, min_size=1, max_size=5))
def test_a_written_list_of_targets_is_read_as_the_same_list(specs: list[TargetSpec]) -> None:
    assert GRAMMAR.parse(",".join(map(GRAMMAR.format, specs))) == specs


@given(st.text())
def test_every_text_is_a_list_of_targets_or_a_wrong_target(text: str) -> None:
    specs: list[TargetSpec] = []
    with suppress(BadTarget):
        specs = GRAMMAR.parse(text)
    for spec in specs:
        assert GRAMMAR.parse(GRAMMAR.format(spec)) == [spec]
