"""Some limits on a request are checked before its body is decoded."""

import time

import msgspec
import pytest

from hermes.entry.http.chat_request import parse_chat
from hermes.entry.http.errors import ApiError
from hermes.entry.http.request_limits import MOST_REQUEST_MESSAGES, has_too_many_messages

LARGE = b'"' + b"x" * (20 * MOST_REQUEST_MESSAGES) + b'"'


def body(messages: int, message: bytes = b'{"role":"user"}', rest: bytes = b"") -> bytes:
    return b'{"messages":[%b]%b}' % (b",".join([message] * messages), rest)


@pytest.mark.parametrize(
    "message",
    [
        b'{"role":""}',
        b'{"role":"user","content":"hello"}',
        b'{"r\\u006fle":"user","content":[{"type":"text","text":"}"}]}',
        b' { "role" : "user" }\n',
    ],
)
def test_one_message_more_than_allowed_is_too_many(message: bytes) -> None:
    assert has_too_many_messages(body(MOST_REQUEST_MESSAGES + 1, message))
    assert not has_too_many_messages(body(MOST_REQUEST_MESSAGES, message))


@pytest.mark.parametrize(
    "rest", [b"", b',"metadata":%b' % LARGE, b',"tools":[%b{}]' % (b"{}," * 20_000)]
)
def test_other_parts_of_a_large_body_are_not_counted(rest: bytes) -> None:
    large = body(MOST_REQUEST_MESSAGES, b'{"role":"user","content":"{{{{"}', rest)
    assert not has_too_many_messages(large)
    assert len(parse_chat(large).messages) == MOST_REQUEST_MESSAGES


def test_too_many_messages_are_a_bad_request_with_a_code_of_its_own() -> None:
    with pytest.raises(ApiError) as caught:
        parse_chat(body(MOST_REQUEST_MESSAGES + 1))
    assert (caught.value.status, caught.value.code, caught.value.param) == (
        400,
        "too_many_messages",
        "messages",
    )


@pytest.mark.parametrize("end", [b"", b"]", b',"x"]}', b"\xff"])
def test_a_large_body_that_is_not_json_is_refused(end: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        parse_chat(body(MOST_REQUEST_MESSAGES + 1).removesuffix(b"]}") + end)
    assert caught.value.status == 400
    assert caught.value.code in ("invalid_json", "invalid_request")


def test_refusing_nine_megabytes_of_tiny_messages_is_faster_than_decoding_them() -> None:
    hostile = body(550_000)

    def refused() -> None:
        with pytest.raises(ApiError, match="messages at most"):
            parse_chat(hostile)

    def decoded() -> None:
        msgspec.json.decode(hostile)

    assert len(hostile) > 8_000_000
    assert best(refused) < best(decoded) / 2


def best(function: object) -> float:
    """Returns how many seconds the fastest of three calls takes."""
    assert callable(function)
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return min(times)
