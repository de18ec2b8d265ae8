"""The text of a session key identifies one conversation, even with hostile ids."""

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes.types.identity import AgentId, Principal, SessionKey, new_id

WORDS = ["", ":", "%", "/", "\0", "user", "thread", "account", "%3A", "a:user:b", "\ud800", "😀"]
ids = st.sampled_from(WORDS) | st.text(st.characters(), max_size=8)
optional = st.none() | ids
keys = st.builds(
    SessionKey,
    agent=ids.map(AgentId),
    platform=ids,
    kind=st.sampled_from(["private", "group", "channel"]),
    chat=ids,
    account=optional,
    user=optional,
    thread=optional,
)


@given(keys)
def test_a_key_can_be_parsed_from_its_text(key: SessionKey) -> None:
    assert SessionKey.parse(str(key)) == key


@given(keys, keys)
@example(
    SessionKey(agent=AgentId("a"), platform="p", kind="group", chat="c", user="x:thread:y"),
    SessionKey(agent=AgentId("a"), platform="p", kind="group", chat="c", user="x", thread="y"),
)
@example(
    SessionKey(agent=AgentId("a"), platform="p", kind="group", chat="\ud83d\ude00"),
    SessionKey(agent=AgentId("a"), platform="p", kind="group", chat="😀"),
)
def test_two_different_keys_never_have_the_same_text(one: SessionKey, other: SessionKey) -> None:
    assert (str(one) == str(other)) == (one == other)


@given(keys)
def test_the_text_of_a_key_is_plain_ascii(key: SessionKey) -> None:
    assert str(key).isascii()
    assert "\0" not in str(key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "agent",
        "agent:a:p:private",
        "robot:a:p:private:c",
        "agent:a:p:nowhere:c",
        "agent:a:p:private:c:user",
        "agent:a:p:private:c:role:x",
        "agent:a:p:private:c:user:x:user:y",
        "agent:a:p:private:c:user:x:account:y",
        "agent:a:p:private:%zz",
        "agent:a:p:private:%ff",
        "agent:a:p:private:%3a",
        "agent:a:p:private:%41",
        "agent:a:p:private:ü",
        " agent:a:p:private:c",
    ],
)
def test_text_that_is_not_a_session_key_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"session key|utf-8"):
        SessionKey.parse(text)


@given(st.text(st.characters(), max_size=40))
def test_parsing_any_text_returns_a_key_or_raises_value_error(text: str) -> None:
    try:
        key = SessionKey.parse(text)
    except ValueError:
        return
    assert str(key) == text


def test_ids_are_unique_and_sort_by_time() -> None:
    made = [new_id() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert [one[:11] for one in made] == sorted(one[:11] for one in made)


def test_a_principal_without_a_person_is_not_the_owner() -> None:
    with pytest.raises(msgspec.ValidationError, match="person"):
        msgspec.convert({"name": "webhook"}, Principal)
