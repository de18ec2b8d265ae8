"""The JSON of the HTTP API contains default values, and every text can be encoded."""

import msgspec
import pytest

from hermes.streaming.wire import (
    Chunk,
    Delta,
    MessageDelta,
    RunSuspended,
    ToolUpdate,
    Usage,
    encode,
    error_type,
)
from hermes.types.events import UsageReported


def test_defaults_are_written_and_unset_fields_are_not() -> None:
    chunk = msgspec.json.decode(encode(Chunk(id="c", created=1, model="m")))
    assert chunk["object"] == "chat.completion.chunk"
    assert chunk["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}]
    assert "usage" not in chunk
    assert encode(Delta(content="")) == b'{"content":""}'


def test_the_id_of_a_call_has_the_name_that_clients_expect() -> None:
    news = msgspec.json.decode(encode(ToolUpdate(tool="t", call="c1", status="running")))
    assert news == {"tool": "t", "toolCallId": "c1", "status": "running"}


def test_the_name_of_a_run_s_event_is_in_its_json() -> None:
    assert encode(MessageDelta(run_id="r", delta="x")) == (
        b'{"event":"message.delta","run_id":"r","delta":"x"}'
    )
    assert RunSuspended.__struct_config__.tag == "run.suspended"


def test_total_tokens_is_the_sum_of_input_and_output_tokens() -> None:
    assert Usage.of(None) == Usage()
    reported = UsageReported(prompt_tokens=10, completion_tokens=3)
    assert Usage.of(reported) == Usage(prompt_tokens=10, completion_tokens=3, total_tokens=13)


@pytest.mark.parametrize("text", ["\ud800", "a\udcffb"])
def test_characters_that_utf_8_can_not_encode_become_question_marks(text: str) -> None:
    assert "?" in encode(text).decode()
    sent = encode(MessageDelta(run_id="r", delta=text))
    assert msgspec.json.decode(sent)["delta"] == text.encode(errors="replace").decode()


def test_encoded_text_stays_on_one_line() -> None:
    assert b"\n" not in encode("a\nb\r\nc")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (404, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "server_error"),
        (504, "server_error"),
    ],
)
def test_a_status_has_openais_error_type(status: int, kind: str) -> None:
    assert error_type(status) == kind
