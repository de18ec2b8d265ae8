"""The body of a chat completion request: its messages, its options, and its mistakes."""

import msgspec
import pytest

from hermes.entry.http.chat_request import (
    MOST_PARTS,
    ChatCompletionRequest,
    fingerprint,
    parse_chat,
    unknown_fields,
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


def ignored(body: dict[str, object]) -> list[str]:
    encoded = msgspec.json.encode(body)
    request = parse_chat(encoded)
    return [*request.ignored(), *unknown_fields(request, encoded)]


def test_options_without_effect_are_named_unless_they_ask_for_nothing() -> None:
    said = [{"role": "user", "content": "hi"}]
    nothing = {"tools": [], "n": 1, "logprobs": False, "response_format": None, "x": None}
    assert ignored({"messages": said, **nothing, "service_tier": "auto"}) == []
    said.append({"role": "tool", "content": "x"})
    wanted = {"tools": [{"type": "function"}], "logprobs": True, "x-y": 1}
    assert ignored({"messages": said, **wanted}) == [
        "tools",
        "messages.tool_calls",
        "logprobs",
        "x-y",
    ]


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ({"role": "assistant", "content": "x", "name": "kim"}, "messages.name"),
        ({"role": "assistant", "content": "x", "audio": {"id": "a"}}, "messages.audio"),
        (
            {"role": "assistant", "content": "x", "function_call": {"name": "f"}},
            "messages.function_call",
        ),
    ],
)
def test_parts_of_messages_without_effect_are_named(message: object, name: str) -> None:
    user = {"role": "user", "content": "hi"}
    assert ignored({"messages": [message, user]}) == [name]
    # OpenAI's client sends all fields of an answer back.
    empty = {"role": "assistant", "content": "x", "audio": None, "function_call": None}
    assert ignored({"messages": [empty, user]}) == []


def test_the_model_is_told_the_name_of_a_participant() -> None:
    request = parsed(messages=[{"role": "user", "content": "hi", "name": "Ada"}])
    assert request.conversation() == [UserMessage(text="hi", sender="Ada")]
    assert request.ignored() == []


def test_a_refusal_is_what_the_assistant_said() -> None:
    refused = {"role": "assistant", "content": None, "refusal": "No."}
    request = parsed(messages=[refused, {"role": "user", "content": "hi"}])
    assert request.conversation()[0] == AssistantMessage(text="No.")


@pytest.mark.parametrize("n", [0, 2, 100])
def test_only_one_choice_can_be_asked_for(n: int) -> None:
    with pytest.raises(ApiError) as caught:
        saying(("user", "hi"), n=n)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "n")


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"\xff", "invalid_json", None),
        (b"[]", "invalid_request", None),
        (b'{"messages":[]}', "invalid_request", "messages"),
        (b'{"messages":[{"role":7}]}', "invalid_request", "messages[0].role"),
        (b'{"messages":[{"role":"user"}],"seed":"x"}', "invalid_request", "seed"),
        (b'{"new":1,"messages":[{"role":"user"}],"seed":"x"}', "invalid_request", "seed"),
        (b'{"messages":[{"role":"user"}],"n":"2"}', "invalid_request", "n"),
    ],
)
def test_a_body_that_can_not_be_read_says_where(body: bytes, code: str, param: str | None) -> None:
    with pytest.raises(ApiError) as caught:
        parse_chat(body)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, code, param)


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


def test_a_fingerprint_is_that_of_the_session_and_the_body() -> None:
    pairs = [("", b"a"), ("", b"b"), ("s", b"a"), ("sa", b"")]
    assert fingerprint(*pairs[0]) == fingerprint(*pairs[0])
    assert len({fingerprint(*pair) for pair in pairs}) == len(pairs)


@pytest.mark.parametrize("name", ["x" * 65, "a\nb"])
def test_a_name_is_short_and_printable(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        parsed(messages=[{"role": "user", "content": "hi", "name": name}]).conversation()
    assert caught.value.param == "messages[0].name"
