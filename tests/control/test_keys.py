"""A session key names a conversation by its agent, platform, account, chat and thread."""

import pytest

from hermes.control.keys import session_key
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.session_keys import count_collisions
from hermes.types.identity import ChatKind, Source


def source(kind: ChatKind, thread: str | None = None, account: str = "telegram") -> Source:
    return Source(
        platform="telegram",
        account=account,
        chat_kind=kind,
        chat_id="-100",
        user_id="42",
        thread_id=thread,
        user_name="Ann",
        chat_name="Club",
    )


@pytest.mark.parametrize(
    ("kind", "thread", "account", "expected"),
    [
        ("private", None, "telegram", "agent:main:telegram:private:-100"),
        ("private", "9", "telegram", "agent:main:telegram:private:-100:thread:9"),
        ("group", None, "telegram", "agent:main:telegram:group:-100:user:42"),
        ("group", "9", "telegram", "agent:main:telegram:group:-100:user:42:thread:9"),
        ("channel", None, "telegram", "agent:main:telegram:channel:-100"),
        (
            "private",
            None,
            "telegram.support",
            "agent:main:telegram:private:-100:account:telegram.support",
        ),
        (
            "group",
            "9",
            "telegram.support",
            "agent:main:telegram:group:-100:account:telegram.support:user:42:thread:9",
        ),
    ],
)
def test_the_key_contains_the_chat_type_the_thread_and_the_account(
    kind: ChatKind, thread: str | None, account: str, expected: str
) -> None:
    assert str(session_key(DEFAULT_AGENT, source(kind, thread, account))) == expected


def test_names_that_people_choose_are_not_part_of_the_key() -> None:
    key = str(session_key(DEFAULT_AGENT, source("group")))
    assert "Ann" not in key
    assert "Club" not in key


def test_no_two_of_20000_random_conversations_share_a_key() -> None:
    """`make bars` makes the same check with more conversations."""
    different, collisions = count_collisions(20_000)
    assert collisions == 0
    assert different > 15_000
