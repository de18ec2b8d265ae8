"""The body of a chat completion request: its messages, its options, and its mistakes."""

import msgspec
import pytest

from hermes.entry.http.chat_request import (
    MOST_PARTS,
    REQUEST_MESSAGES,
    ChatCompletionRequest,
    fingerprint,
    parse_chat,
)
from hermes.entry.http.errors import ApiError
from hermes.types.messages import AssistantMessage, Sampling, UserMessage


def parsed(**fields: object) -> ChatCompletionRequest:
    return parse_chat(msgspec.json.encode(fields))


def saying(*messages: tuple[str, object], **fields: object) -> ChatCompletionRequest:
    said = [{"role": role, "content": content} for role, content in messages]
    return parsed(messages=said, **fields)


def test_people_and_the_assistant_converse_and_the_system_instructs() -> None:
    request = saying(
        ("system", "be brief"),
        ("developer", "be kind"),
        ("user", "hi"),
        ("assistant", "hello"),
        ("assistant", None),
        ("tool", "ignored"),
        ("user", [{"type": "text", "text": "and"}, {"type": "input_text", "text": "now?"}]),
    )
    assert request.instructions() == "be brief\nbe kind"
    assert request.conversation() == [
        UserMessage(text="hi"),
        AssistantMessage(text="hello"),
        UserMessage(text="and\nnow?"),
    ]
    assert request.news() == [UserMessage(text="and\nnow?")]


def test_without_an_assistant_message_everything_is_new() -> None:
    request = saying(("user", "a"), ("user", "b"))
    assert request.news() == [UserMessage(text="a"), UserMessage(text="b")]


def test_a_conversation_that_ends_with_the_assistant_has_nothing_new() -> None:
    with pytest.raises(ApiError, match="last message must be the user's"):
        saying(("user", "a"), ("assistant", "b")).news()


def test_sampling_options_are_passed_on() -> None:
    request = saying(
        ("user", "hi"), temperature=0.5, max_tokens=5, max_completion_tokens=7, stop="end", seed=1
    )
    assert request.sampling() == Sampling(temperature=0.5, max_tokens=7, stop=("end",), seed=1)
    assert saying(("user", "hi"), stop=["a", "b"]).sampling().stop == ("a", "b")


def test_options_without_effect_are_named_unless_they_ask_for_nothing() -> None:
    request = saying(("user", "hi"), tools=[], n=1, logprobs=False, response_format=None)
    assert request.ignored() == []
    request = saying(("user", "hi"), ("tool", "x"), tools=[{"type": "function"}], n=2)
    assert request.ignored() == ["tools", "n", "messages.tool_calls"]


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"\xff", "invalid_json", None),
        (b"[]", "invalid_request", None),
        (b'{"messages":[]}', "invalid_request", "messages"),
        (b'{"messages":[{"role":7}]}', "invalid_request", "messages[0].role"),
        (b'{"messages":[{"role":"user"}],"seed":"x"}', "invalid_request", "seed"),
    ],
)
def test_a_body_that_can_not_be_read_says_where(body: bytes, code: str, param: str | None) -> None:
    with pytest.raises(ApiError) as caught:
        parse_chat(body)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, code, param)


def test_a_request_has_a_bounded_number_of_messages() -> None:
    most = [("user", "hi")] * REQUEST_MESSAGES
    assert len(saying(*most).conversation()) == REQUEST_MESSAGES
    with pytest.raises(ApiError) as caught:
        saying(*most, ("user", "hi"))
    assert (caught.value.status, caught.value.param) == (400, "messages")


@pytest.mark.parametrize(
    ("role", "content", "code", "param"),
    [
        ("wizard", "hi", "invalid_role", "messages[0].role"),
        ("system", "only", "invalid_request", "messages"),
        ("user", [{"type": "image_url"}], "unsupported_content_type", "messages[0].content"),
        ("user", [{"text": "x"}] * (MOST_PARTS + 1), "invalid_request", "messages[0].content"),
    ],
)
def test_a_message_that_can_not_be_used_says_which(
    role: str, content: object, code: str, param: str
) -> None:
    with pytest.raises(ApiError) as caught:
        saying((role, content)).conversation()
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, code, param)


def test_the_same_body_has_the_same_fingerprint() -> None:
    assert fingerprint(b"a") == fingerprint(b"a") != fingerprint(b"b")
