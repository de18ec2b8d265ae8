"""The body of a chat completion request is read, and errors name the wrong field."""

import msgspec
import pytest

from hermes.entry.http.chat_request import (
    ChatCompletionRequest,
    fingerprint,
    parse_chat,
    unknown_fields,
)
from hermes.entry.http.errors import ApiError
from hermes.types.messages import Sampling


def parsed(**fields: object) -> ChatCompletionRequest:
    return parse_chat(msgspec.json.encode(fields))


def saying(*messages: tuple[str, object], **fields: object) -> ChatCompletionRequest:
    said = [{"role": role, "content": content} for role, content in messages]
    return parsed(messages=said, **fields)


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


def test_options_without_effect_are_named_unless_they_request_nothing() -> None:
    said = [{"role": "user", "content": "hi"}]
    nothing = {"tools": [], "n": 1, "logprobs": False, "response_format": None, "x": None}
    assert ignored({"messages": said, **nothing, "service_tier": "auto"}) == []
    said.append({"role": "function", "content": "x"})
    wanted = {"functions": [{"name": "f"}], "logprobs": True, "x-y": 1}
    assert ignored({"messages": said, **wanted}) == [
        "functions",
        "messages.function_call",
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


@pytest.mark.parametrize("n", [0, 2, 100])
def test_only_one_choice_can_be_requested(n: int) -> None:
    with pytest.raises(ApiError) as caught:
        saying(("user", "hi"), n=n)
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "n")


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        (b"{", "invalid_json", None),
        (b"\xff", "invalid_json", None),
        (b"[]", "invalid_request", None),
        (b"{}", "invalid_request", "messages"),
        (b'{"messages":[]}', "invalid_request", "messages"),
        (b'{"messages":[{"content":"hi"}]}', "invalid_request", "messages[0].role"),
        (b'{"messages":[{"role":7}]}', "invalid_request", "messages[0].role"),
        (b'{"messages":[{"role":"user"}],"seed":"x"}', "invalid_request", "seed"),
        (b'{"new":1,"messages":[{"role":"user"}],"seed":"x"}', "invalid_request", "seed"),
        (b'{"messages":[{"role":"user"}],"n":"2"}', "invalid_request", "n"),
    ],
)
def test_the_error_for_an_invalid_body_names_the_place(
    body: bytes, code: str, param: str | None
) -> None:
    with pytest.raises(ApiError) as caught:
        parse_chat(body)
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, code, param)


def test_the_fingerprint_depends_on_the_session_and_the_body() -> None:
    pairs = [("", b"a"), ("", b"b"), ("s", b"a"), ("sa", b"")]
    assert fingerprint(*pairs[0]) == fingerprint(*pairs[0])
    assert len({fingerprint(*pair) for pair in pairs}) == len(pairs)
