"""The one function that names a conversation."""

import pytest

from hermes.control.keys import session_key
from hermes.types.identity import DEFAULT_AGENT, ChatKind, Source


def source(kind: ChatKind, thread: str | None = None) -> Source:
    return Source(
        platform="telegram",
        account="telegram.support",
        chat_kind=kind,
        chat_id="-100",
        user_id="42",
        thread_id=thread,
        user_name="Ann",
        chat_name="Club",
    )


@pytest.mark.parametrize(
    ("kind", "thread", "sole", "expected"),
    [
        ("private", None, True, "agent:main:telegram:private:-100"),
        ("private", "9", True, "agent:main:telegram:private:-100:thread:9"),
        ("group", None, True, "agent:main:telegram:group:-100:user:42"),
        ("group", "9", True, "agent:main:telegram:group:-100:user:42:thread:9"),
        ("channel", None, True, "agent:main:telegram:channel:-100"),
        ("private", None, False, "agent:main:telegram:private:-100:account:telegram.support"),
        (
            "group",
            "9",
            False,
            "agent:main:telegram:group:-100:account:telegram.support:user:42:thread:9",
        ),
    ],
)
def test_private_group_thread_and_account(
    kind: ChatKind, thread: str | None, sole: bool, expected: str
) -> None:
    assert str(session_key(DEFAULT_AGENT, source(kind, thread), sole_account=sole)) == expected


def test_names_that_people_choose_are_no_part_of_a_key() -> None:
    key = str(session_key(DEFAULT_AGENT, source("group"), sole_account=True))
    assert "Ann" not in key
    assert "Club" not in key
