"""An inbound event adds messages to a turn, or answers a question."""

import pytest

from hermes.control.event_content import answer_text, first_step, new_messages
from hermes.types.identity import CallId, Source, new_id
from hermes.types.messages import (
    Asked,
    Body,
    Edited,
    MessageEvent,
    Origin,
    Pressed,
    Said,
    ToolMessage,
    UserMessage,
)


def event(body: Body, *, shared: bool = False) -> MessageEvent:
    source = Source(
        platform="p",
        account="p.a",
        chat_kind="group" if shared else "private",
        chat_id="c",
        user_id="u",
        user_name="Ada",
    )
    return MessageEvent(dedupe_key="k", source=source, origin=Origin(), received_at=0.0, body=body)


def test_a_message_names_its_sender_only_where_several_people_talk() -> None:
    assert new_messages(event(Said(text="hi"))) == (UserMessage(text="hi"),)
    assert new_messages(event(Said(text="hi"), shared=True)) == (
        UserMessage(text="hi", sender="Ada"),
    )


def test_a_message_that_begins_with_two_slashes_is_not_a_command() -> None:
    assert new_messages(event(Said(text="//stop"))) == (UserMessage(text="/stop"),)
    asked = Asked(messages=(UserMessage(text="//first"), UserMessage(text="//stop")))
    in_session = Asked(messages=asked.messages, stateless=False)
    found = (UserMessage(text="//first"), UserMessage(text="/stop"))
    assert new_messages(event(in_session)) == found
    # A stateless request has no commands, so its text is not changed.
    assert new_messages(event(asked)) == asked.messages


def test_a_request_adds_its_messages_and_a_button_adds_none() -> None:
    asked = Asked(messages=(UserMessage(text="a"), UserMessage(text="b")))
    assert new_messages(event(asked)) == asked.messages
    assert new_messages(event(Pressed(question="q", choice="a"))) == ()


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (Said(text="blue"), "blue"),
        (Pressed(question="q", choice="blue"), "blue"),
        (Asked(messages=(UserMessage(text="blue"),), stateless=False), "blue"),
        (Asked(messages=(UserMessage(text="blue"),)), None),
        (Edited(message_id="1", text="blue"), None),
    ],
)
def test_words_buttons_and_requests_of_a_session_can_answer_a_question(
    body: Body, text: str | None
) -> None:
    assert answer_text(event(body)) == text


def test_the_first_step_of_a_request_follows_the_step_of_its_results() -> None:
    assert first_step(Asked(messages=(UserMessage(text="a"),))) == 0
    result = ToolMessage(call=CallId(f"{new_id()}_4_1"), text="")
    assert first_step(Asked(messages=(), results=(result,))) == 5
