"""The parser reads the streams of chat completions that real servers send."""

from pathlib import Path

import msgspec
import pytest
from openai.types.chat import ChatCompletionChunk

from hermes.core.models.openai_chat import OpenAIChat
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
from hermes.types.messages import AssistantMessage, Echo, ToolCall

PAYLOADS = Path(__file__).with_name("payloads")
CHOICE = choice_of("chat")
CALLS = (
    ToolCall(id=CallId("t_1_0"), name="look", arguments='{"at":1}'),
    ToolCall(id=CallId("t_1_1"), name="listen", arguments="{}"),
)
PLAIN = (
    b'{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"Blue."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}'
)


def recorded(name: str) -> bytes:
    return (PAYLOADS / f"chat_{name}.sse").read_bytes()


def heard(stream: bytes) -> tuple[AssistantMessage, list[AgentEvent]]:
    return read(OpenAIChat(), stream)


@pytest.mark.parametrize("name", ["openai_text", "openai_calls"])
def test_every_field_that_we_read_exists_in_openais_types(name: str) -> None:
    for line in recorded(name).splitlines():
        if line.startswith(b"data: {"):
            chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
            chunk |= msgspec.json.decode(line[6:])
            ChatCompletionChunk.model_validate(chunk, strict=True)


def test_text_is_emitted_in_pieces_and_returned_complete() -> None:
    message, events = heard(recorded("openai_text"))
    assert message == AssistantMessage(text="Grüß Gott 👋")
    assert events == [
        TextDelta(text="Grüß Gott 👋"),
        UsageReported(prompt_tokens=9, completion_tokens=3),
        SegmentEnded(),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "openai_calls",
        "calls_without_index",
        "gemini_calls_all_numbered_0",
        "old_vllm_new_id_in_every_piece",
        "object_arguments",
    ],
)
def test_calls_are_assembled_from_pieces_of_any_size_and_get_our_own_ids(name: str) -> None:
    message, events = heard(recorded(name))
    assert message == AssistantMessage(calls=CALLS)
    assert events == [SegmentEnded()]


def test_reasoning_is_separate_from_the_answer() -> None:
    message, events = heard(recorded("deepseek_text"))
    assert message == AssistantMessage(text="Blue.", reasoning="Let me see.")
    assert events == [
        ReasoningDelta(text="Let me see."),
        TextDelta(text="Blue."),
        UsageReported(prompt_tokens=5, completion_tokens=7),
        SegmentEnded(),
    ]


def test_mistrals_reasoning_is_separate_from_its_text() -> None:
    message, _ = heard(recorded("mistral_thinking"))
    assert message == AssistantMessage(text="Blue.", reasoning="Let me see.")


def test_the_last_newline_and_the_done_line_may_be_missing() -> None:
    message, _ = heard(recorded("openrouter_text"))
    assert message == AssistantMessage(text="Blue.", reasoning="Hm.")


def test_reasoning_is_sent_back_together_with_its_calls() -> None:
    message, events = heard(recorded("deepseek_calls"))
    body = '{"reasoning_content":"Two things to do."}'
    assert message == AssistantMessage(
        text="Looking.",
        reasoning="Two things to do.",
        calls=CALLS,
        echo=Echo(wire="chat", model=CHOICE.model, body=body),
    )
    usage = UsageReported(prompt_tokens=339, completion_tokens=83, cached_tokens=320)
    assert events[-2:] == [usage, SegmentEnded()]


def test_empty_reasoning_is_sent_back_too() -> None:
    stream = recorded("deepseek_calls").replace(b"Two things", b"").replace(b" to do.", b"")
    message, _ = heard(stream)
    assert message.echo is not None
    assert message.echo.body == '{"reasoning_content":""}'


def test_signatures_are_sent_back_with_their_calls() -> None:
    message, _ = heard(recorded("gemini_signed_calls"))
    assert message.calls == CALLS
    assert message.echo is not None
    signed = {"0": {"google": {"thought_signature": "CiQB0e2Kb=="}}}
    assert msgspec.json.decode(message.echo.body) == {"extra_content": signed}


@pytest.mark.parametrize(
    ("usage", "cached", "cost"),
    [
        (b'{"prompt_tokens_details":{"cached_tokens":7}}', 7, None),
        (b'{"prompt_tokens_details":null,"prompt_cache_hit_tokens":6}', 6, None),
        (b'{"prompt_tokens_details":{},"cost":0.00125}', 0, 0.00125),
    ],
)
def test_usage_contains_cached_tokens_and_cost(
    usage: bytes, cached: int, cost: float | None
) -> None:
    end = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}],"usage":%b}\n' % usage
    _, events = heard(end)
    assert events[0] == UsageReported(
        prompt_tokens=0, completion_tokens=0, cached_tokens=cached, cost=cost
    )


def test_a_completion_that_is_not_streamed_is_parsed() -> None:
    message, events = heard(b"data: " + PLAIN)
    assert message == AssistantMessage(text="Blue.")
    assert events == [
        TextDelta(text="Blue."),
        UsageReported(prompt_tokens=5, completion_tokens=2),
        SegmentEnded(),
    ]


def test_an_error_ends_an_unfinished_answer() -> None:
    started = b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n'
    error = b'data: {"error":{"message":"too fast","code":429}}\n\n'
    with pytest.raises(RateLimited, match="too fast"):
        heard(started + error)
    ended = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
    assert heard(started + ended + error)[0].text == "Hel"


def test_an_answer_that_failed_behind_a_router_was_cut_off() -> None:
    ended = b'data: {"choices":[{"delta":{"content":""},"finish_reason":"error"}]}\n\n'
    with pytest.raises(Disconnected, match="broke off"):
        heard(ended + b"data: [DONE]\n\n")
