"""The parser reads the stream events of Anthropic's API."""

from pathlib import Path

import msgspec
import pytest
from anthropic.types import RawMessageStreamEvent
from pydantic import TypeAdapter

from hermes.core.models.anthropic import AnthropicMessages
from hermes.testing.upstream import choice_of, read
from hermes.types.errors import Disconnected, RateLimited
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
CHOICE = choice_of("anthropic")
CALLS = (
    ToolCall(id=CallId("t_1_0"), name="look", arguments='{"at":1}'),
    ToolCall(id=CallId("t_1_1"), name="listen", arguments="{}"),
)
THINKING = {
    "type": "thinking",
    "thinking": "Two things to do.",
    "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk=",
}
REDACTED = {"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4="}
WHOLE = {
    "id": "msg_01",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-6",
    "content": [
        THINKING,
        {"type": "text", "text": "Looking."},
        REDACTED,
        {"type": "tool_use", "id": "toolu_01", "name": "look", "input": {"at": 1}},
        {"type": "tool_use", "id": "toolu_02", "name": "listen", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 12, "output_tokens": 89},
}


def recorded(name: str) -> bytes:
    return (PAYLOADS / f"anthropic_{name}.sse").read_bytes()


def heard(stream: bytes) -> tuple[AssistantMessage, list[AgentEvent]]:
    return read(AnthropicMessages(), stream)


@pytest.mark.parametrize("path", sorted(PAYLOADS.glob("anthropic_*")), ids=lambda path: path.stem)
def test_every_field_that_we_read_exists_in_anthropics_types(path: Path) -> None:
    sent: TypeAdapter[object] = TypeAdapter(RawMessageStreamEvent)
    for line in path.read_bytes().splitlines():
        if line.startswith(b"data: ") and b'"ping"' not in line:
            sent.validate_python(msgspec.json.decode(line[6:]), strict=True)


def test_text_is_emitted_in_pieces_and_returned_complete() -> None:
    message, events = heard(recorded("text"))
    assert message == AssistantMessage(text="Grüß Gott 👋")
    assert events == [
        TextDelta(text="Grüß Gott 👋"),
        UsageReported(prompt_tokens=12 + 2048 + 100, completion_tokens=9, cached_tokens=2048),
        SegmentEnded(),
    ]


def test_interleaved_calls_are_separated() -> None:
    message, events = heard(recorded("thinking_calls"))
    assert message.text == "Looking."
    assert message.calls == CALLS
    assert message.reasoning == "Two things to do."
    assert events == [
        ReasoningDelta(text="Two things to do."),
        TextDelta(text="Looking."),
        UsageReported(prompt_tokens=12, completion_tokens=89),
        SegmentEnded(),
    ]


def test_reasoning_is_kept_unchanged_at_its_position() -> None:
    message, _ = heard(recorded("thinking_calls"))
    assert message.echo is not None
    assert (message.echo.wire, message.echo.model) == ("anthropic", CHOICE.model)
    assert msgspec.json.decode(message.echo.body) == [[0, THINKING], [1, REDACTED]]


def test_reasoning_that_has_only_a_signature_is_kept() -> None:
    message, _ = heard(recorded("omitted_thinking"))
    assert message.reasoning == ""
    assert message.echo is not None
    signed = {"type": "thinking", "thinking": "", "signature": "EvoDCkYICxgCKkBwaXk="}
    assert msgspec.json.decode(message.echo.body) == [[0, signed]]


def test_a_message_that_is_not_streamed_gives_the_same_answer() -> None:
    whole, _ = heard(b"data: " + msgspec.json.encode(WHOLE))
    assert whole == heard(recorded("thinking_calls"))[0]


@pytest.mark.parametrize(
    ("reason", "cut"),
    [("max_tokens", "length"), ("stop_sequence", ""), ("refusal", "content_filter"), ("new", "")],
)
def test_every_stop_reason_ends_an_answer(reason: str, cut: str) -> None:
    ended = recorded("text").replace(b"end_turn", reason.encode())
    message, _ = heard(ended)
    assert (message.text, message.cut) == ("Grüß Gott 👋", cut)


def test_a_message_that_is_not_streamed_has_a_finish_reason() -> None:
    whole, _ = heard(b"data: " + msgspec.json.encode({**WHOLE, "stop_reason": "max_tokens"}))
    assert whole.cut == "length"


def test_later_token_counts_replace_earlier_counts() -> None:
    later = b'"usage":{"input_tokens":20,"cache_read_input_tokens":null,"output_tokens":30}'
    _, events = heard(recorded("text").replace(b'"usage":{"output_tokens":9}', later))
    assert events[-2] == UsageReported(
        prompt_tokens=20 + 2048 + 100, completion_tokens=30, cached_tokens=2048
    )


def test_an_error_ends_an_unfinished_answer() -> None:
    error = (
        b'event: error\ndata: {"type":"error","error":{"details":null,"type":"%b","message":"no"},'
        b'"request_id":"req_1"}\n\n'
    )
    head, _, _ = recorded("text").partition(b"event: content_block_stop")
    with pytest.raises(Disconnected, match="529"):
        heard(head + error % b"overloaded_error")
    with pytest.raises(RateLimited):
        heard(head + error % b"rate_limit_error")
    assert heard(recorded("text") + error % b"api_error")[0].text == "Grüß Gott 👋"


def test_unknown_events_are_ignored() -> None:
    news = (
        b'data: {"type":"content_block_start","index":7,"content_block":{"type":"new"}}\n\n'
        b'data: {"type":"content_block_delta","index":7,"delta":{"type":"new_delta","new":[]}}\n\n'
        b'data: {"type":"content_block_delta","index":8,"delta":{"partial_json":"{"}}\n\n'
        b'data: {"type":"new_event"}\n\n'
    )
    assert heard(news + recorded("text"))[0] == AssistantMessage(text="Grüß Gott 👋")
