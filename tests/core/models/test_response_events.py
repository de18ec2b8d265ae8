"""The parser reads the stream events of OpenAI's Responses API."""

from pathlib import Path

import msgspec
import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from hermes.core.models.openai_responses import OpenAIResponses
from hermes.testing.upstream import choice_of, read
from hermes.types.errors import Disconnected, RateLimited, TooLong
from hermes.types.events import (
    AgentEvent,
    ReasoningDelta,
    SegmentEnded,
    TextDelta,
    UsageReported,
)
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, ToolCall

PAYLOADS = Path(__file__).with_name("payloads")
CHOICE = choice_of("responses")
CALLS = (
    ToolCall(id=CallId("t_1_0"), name="look", arguments='{"at":1}'),
    ToolCall(id=CallId("t_1_1"), name="listen", arguments="{}"),
)


def recorded(name: str) -> bytes:
    return (PAYLOADS / f"responses_{name}.sse").read_bytes()


def heard(stream: bytes) -> tuple[AssistantMessage, list[AgentEvent]]:
    return read(OpenAIResponses(), stream)


@pytest.mark.parametrize("path", sorted(PAYLOADS.glob("responses_*")), ids=lambda path: path.stem)
def test_the_parser_reads_the_events_that_openai_sends(path: Path) -> None:
    sent: TypeAdapter[object] = TypeAdapter(ResponseStreamEvent)
    for line in path.read_bytes().splitlines():
        if line.startswith(b"data: "):
            sent.validate_python(msgspec.json.decode(line[6:]))


def test_text_is_emitted_in_pieces_and_returned_complete() -> None:
    message, events = heard(recorded("text"))
    assert message == AssistantMessage(text="Grüß Gott 👋")
    assert events == [
        TextDelta(text="Grüß Gott 👋"),
        UsageReported(prompt_tokens=1036, completion_tokens=9, cached_tokens=1024),
        SegmentEnded(),
    ]


def test_interleaved_calls_are_separated() -> None:
    message, events = heard(recorded("reasoning_calls"))
    assert message.text == "Looking."
    assert message.calls == CALLS
    assert message.reasoning == "Two things\n\nto do."
    assert events == [
        ReasoningDelta(text="Two things\n\nto do."),
        TextDelta(text="Looking."),
        UsageReported(prompt_tokens=81, completion_tokens=60),
        SegmentEnded(),
    ]


def test_the_final_arguments_of_a_call_may_be_missing() -> None:
    stream = recorded("reasoning_calls")
    pieces_only = stream.replace(b"response.output_item.done", b"response.something_else")
    assert heard(pieces_only)[0].calls == CALLS


def test_encrypted_reasoning_is_kept_at_its_position() -> None:
    message, _ = heard(recorded("reasoning_calls"))
    assert message.echo is not None
    assert (message.echo.wire, message.echo.model) == ("responses", CHOICE.model)
    first = {
        "type": "reasoning",
        "id": "rs_0",
        "summary": [
            {"type": "summary_text", "text": "Two things"},
            {"type": "summary_text", "text": "to do."},
        ],
        "encrypted_content": "gAAAAABoISQ24OyVRYbkYfukdJoqdzWT",
    }
    second = {
        "type": "reasoning",
        "id": "rs_2",
        "summary": [],
        "encrypted_content": "gAAAAABoISQ24second",
    }
    assert msgspec.json.decode(message.echo.body) == [[0, first], [1, second]]


def test_reasoning_without_encrypted_content_is_not_kept() -> None:
    stream = recorded("reasoning_calls")
    open_thoughts = stream.replace(b"encrypted_content", b"left_out")
    assert heard(open_thoughts)[0].echo is None


def test_readable_reasoning_is_emitted() -> None:
    thought = b'data: {"type":"response.reasoning_text.delta","delta":"Hm."}\n\n'
    assert heard(thought + recorded("text"))[1][0] == ReasoningDelta(text="Hm.")


def test_the_text_of_a_refusal_is_the_answer() -> None:
    stream = recorded("text").replace(b"response.output_text.delta", b"response.refusal.delta")
    assert heard(stream)[0].text == "Grüß Gott 👋"


def test_an_answer_that_reached_its_limit_is_returned() -> None:
    message, events = heard(recorded("incomplete"))
    assert message == AssistantMessage(text="Once upon", cut="length")
    assert events[-2] == UsageReported(prompt_tokens=10, completion_tokens=16)


@pytest.mark.parametrize(
    ("details", "cut"),
    [
        (b'{"reason":"content_filter"}', "content_filter"),
        (b'{"reason":"new"}', "length"),
        (b"null", "length"),
    ],
)
def test_an_incomplete_answer_counts_as_cut_off_for_every_reason(details: bytes, cut: str) -> None:
    stream = recorded("incomplete").replace(b'{"reason":"max_output_tokens"}', details)
    assert heard(stream)[0].cut == cut


def whole(stream: bytes) -> bytes:
    """Returns the JSON of the complete response, which the last event of a stream contains."""
    *_, last = stream.strip().split(b"data: ")
    return msgspec.json.encode(msgspec.json.decode(last)["response"])


@pytest.mark.parametrize("name", ["text", "reasoning_calls", "incomplete"])
def test_a_response_that_is_not_streamed_gives_the_same_answer(name: str) -> None:
    stream = recorded(name)
    assert heard(b"data: " + whole(stream))[0] == heard(stream)[0]


FAILED = (
    b'data: {"type":"response.failed","response":{"object":"response","status":"failed",'
    b'"error":{"code":"server_error","message":"The model failed"},"output":[]}}\n\n'
)
ERROR = (
    b'data: {"type":"error","sequence_number":3,"code":"rate_limit_exceeded","message":"slow",'
    b'"param":null}\n\n'
)
NESTED = (
    b'data: {"type":"error","error":{"type":"invalid_request_error","code":'
    b'"context_length_exceeded","message":"Your input exceeds the context window"}}\n\n'
)


def test_an_error_ends_an_unfinished_answer() -> None:
    head, _, _ = recorded("text").partition(b"event: response.output_text.done")
    with pytest.raises(Disconnected, match="The model failed"):
        heard(head + FAILED)
    with pytest.raises(RateLimited, match="slow"):
        heard(head + ERROR)
    with pytest.raises(TooLong):
        heard(head + NESTED)
    assert heard(recorded("text") + ERROR + FAILED)[0].text == "Grüß Gott 👋"


@pytest.mark.parametrize("status", ["in_progress", "cancelled", "queued"])
def test_a_response_without_an_end_was_cut_off(status: str) -> None:
    body = whole(recorded("text")).replace(b'"completed"', b'"%b"' % status.encode())
    with pytest.raises(Disconnected, match="broke off"):
        heard(b"data: " + body)
