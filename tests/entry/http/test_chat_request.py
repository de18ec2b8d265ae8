"""The body of a chat completion request: its messages, its options, and its mistakes."""

import msgspec
import pytest

from hermes.entry.http.chat_request import ChatCompletionRequest, fingerprint, parse_chat
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


def test_options_without_effect_are_named_unless_they_ask_for_nothing() -> None:
    request = saying(("user", "hi"), tools=[], n=1, logprobs=False, response_format=None)
    assert request.ignored() == []
    request = saying(("user", "hi"), ("function", "x"), logprobs=True, n=2)
    assert request.ignored() == ["n", "logprobs", "messages.function_call"]


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


def test_the_same_body_has_the_same_fingerprint() -> None:
    assert fingerprint(b"a") == fingerprint(b"a") != fingerprint(b"b")
