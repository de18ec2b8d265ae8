"""Requests in the wire format of Anthropic's messages have the right body and headers."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from hermes.core.models.anthropic import NO_TEXT, AnthropicMessages
from hermes.testing.histories import ScriptedHistory, histories
from hermes.testing.upstream import choice_of, request_to
from hermes.testing.vendors import check
from hermes.testing.wire_formats import WireFormatContract
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Echo,
    Message,
    Sampling,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.types.models import ModelRequest, WireFormat
from hermes.types.profile import Quirks

Block = dict[str, object]
Said = dict[str, object]

CHOICE = choice_of("anthropic")
CACHED = {"type": "ephemeral"}
MARK = b',"cache_control":{"type":"ephemeral"}'
CALLS = (
    ToolCall(id=CallId("t_1_0"), name="look", arguments='{"at":1}'),
    ToolCall(id=CallId("t_1_1"), name="listen", arguments="[broken"),
)
RESULTS = (
    ToolMessage(call=CALLS[0].id, text="sky"),
    ToolMessage(call=CALLS[1].id, text="", failed=True),
)
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}
PAYLOADS = Path(__file__).with_name("payloads")


class TestAnthropicMessages(WireFormatContract):
    mistakes = (
        (b'"is_error":true', b'"is_error":{}'),
        (b'"text":"hi"', b'"text":" "'),
        (b'"role":"assistant"', b'"role":"user"'),
        (b'"tool_use_id":"t_1_0"', b'"tool_use_id":"t_9_9"'),
        (b'"max_tokens":8192', b'"max_tokens":"8192 tokens"'),
    )
    error = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}'
    end = b"]}]}"

    def wire(self) -> WireFormat:
        return AnthropicMessages()

    def limits_parallel(self, mode: str) -> bool:
        return mode != "none"

    def check(self, body: bytes) -> None:
        check("anthropic", body)

    def recordings(self) -> Sequence[Path]:
        return sorted(PAYLOADS.glob("anthropic_*"))

    def recorded_text(self) -> bytes:
        return (PAYLOADS / "anthropic_text.sse").read_bytes()

    def recorded_calls(self) -> bytes:
        return (PAYLOADS / "anthropic_thinking_calls.sse").read_bytes()

    def recorded_cut(self) -> bytes:
        return self.recorded_calls().replace(
            b'"stop_reason":"tool_use"', b'"stop_reason":"max_tokens"'
        )

    def echo(self, text: str) -> str:
        return msgspec.json.encode([[0, THOUGHT | {"thinking": text}]]).decode()

    def unmarked(self, body: bytes) -> bytes:
        return body.replace(MARK, b"")


def encode(request: ModelRequest) -> bytes:
    return AnthropicMessages().body(request)


def sent(request: ModelRequest) -> dict[str, object]:
    return msgspec.json.decode(encode(request), type=dict[str, object])


def messages(*said: Message) -> list[Said]:
    unmarked = encode(request_to(CHOICE, *said)).replace(MARK, b"")
    return msgspec.convert(msgspec.json.decode(unmarked)["messages"], list[Said])


def blocks(said: Said) -> list[Block]:
    return msgspec.convert(said["content"], list[Block])


@settings(deadline=None)
@given(histories())
def test_no_more_cache_markers_are_sent_than_the_provider_allows(
    found: tuple[ScriptedHistory, ...],
) -> None:
    assert encode(request_to(CHOICE, *found[-1])).count(MARK) <= 4


@pytest.mark.parametrize("base_url", ["http://x", "http://x/", "http://x/v1", "http://x/v1/"])
def test_the_base_url_may_lack_the_version(base_url: str) -> None:
    wire, choice = AnthropicMessages(), choice_of("anthropic", base_url)
    assert wire.url(choice) == "http://x/v1/messages"
    assert wire.list_url(choice) == "http://x/v1/models?limit=1000"


def test_every_request_names_the_version_of_the_protocol() -> None:
    keyless = replace(CHOICE, api_key="")
    assert AnthropicMessages().headers(keyless) == {"anthropic-version": "2023-06-01"}


def test_calls_are_assistant_blocks_and_results_are_user_blocks() -> None:
    said = AssistantMessage(text="so", calls=CALLS)
    found = messages(UserMessage(text="hi", sender="Ann"), said, *RESULTS, UserMessage(text="go"))
    assert found == [
        {"role": "user", "content": [{"type": "text", "text": "[Ann] hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "t_1_0", "name": "look", "input": {"at": 1}},
                {
                    "type": "tool_use",
                    "id": "t_1_1",
                    "name": "listen",
                    "input": {"invalid_json": "[broken"},
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t_1_0", "content": "sky"},
                {"type": "tool_result", "tool_use_id": "t_1_1", "is_error": True},
                {"type": "text", "text": "go"},
            ],
        },
    ]


def test_reasoning_is_sent_back_to_the_model_that_wrote_it() -> None:
    redacted = {"type": "redacted_thinking", "data": "x"}
    body = msgspec.json.encode([[0, THOUGHT], [1, redacted]]).decode()
    echo = Echo(wire="anthropic", model=CHOICE.model, body=body)
    said = AssistantMessage(text="so", calls=CALLS, echo=echo)
    found = blocks(messages(UserMessage(text="hi"), said, *RESULTS)[1])
    assert found[0] == THOUGHT
    assert found[2] == redacted
    assert [one["type"] for one in found[3:]] == ["tool_use", "tool_use"]
    other = replace(said, echo=replace(echo, model="other"))
    found = blocks(messages(UserMessage(text="hi"), other, *RESULTS)[1])
    assert [one["type"] for one in found] == ["text", "tool_use", "tool_use"]


def test_empty_text_is_never_sent() -> None:
    found = messages(AssistantMessage(text=" "), UserMessage(text="\n"))
    silent = [{"type": "text", "text": NO_TEXT}]
    assert [(one["role"], one["content"]) for one in found] == [
        ("user", silent),
        ("assistant", silent),
        ("user", silent),
    ]


def test_the_repeated_part_of_a_request_has_a_cache_marker() -> None:
    talk = (
        UserMessage(text="one"),
        AssistantMessage(text="a"),
        UserMessage(text="two"),
        UserMessage(text="too"),
        AssistantMessage(text="b", calls=CALLS),
        *RESULTS,
    )
    request = replace(request_to(CHOICE, *talk), ephemeral="today")
    body = sent(request)
    system = msgspec.convert(body["system"], list[Block])
    assert system == [
        {"type": "text", "text": "be brief", "cache_control": CACHED},
        {"type": "text", "text": "today"},
    ]
    tools = msgspec.convert(body["tools"], list[Block])
    assert tools[-1]["cache_control"] == CACHED
    marked = [
        (index, number)
        for index, said in enumerate(msgspec.convert(body["messages"], list[Said]))
        for number, block in enumerate(blocks(said))
        if "cache_control" in block
    ]
    assert marked == [(2, 1), (4, 1)]
    assert encode(request).count(MARK) == 4


def test_the_cache_marker_precedes_a_last_message_of_the_assistant() -> None:
    body = encode(request_to(CHOICE, UserMessage(text="one"), AssistantMessage(text="a")))
    assert body.count(MARK) == 3
    assert body.endswith(b'{"role":"assistant","content":[{"type":"text","text":"a"}]}]}')


def options(quirks: Quirks, sampling: Sampling) -> dict[str, object]:
    request = replace(request_to(replace(CHOICE, quirks=quirks)), sampling=sampling)
    check("anthropic", encode(request))
    fixed = {"model", "stream", "system", "messages", "tools"}
    return {name: value for name, value in sent(request).items() if name not in fixed}


OLD, NEW = Quirks(reasoning="budget"), Quirks(reasoning="effort")


@pytest.mark.parametrize("model", [OLD, NEW])
def test_a_limit_of_output_tokens_is_always_sent(model: Quirks) -> None:
    assert options(model, Sampling()) == {"max_tokens": 8192}
    assert options(model, Sampling(max_tokens=5)) == {"max_tokens": 5}
    assert options(model, Sampling(stop=("\n", "END"))) == {
        "max_tokens": 8192,
        "stop_sequences": ["END"],
    }


def test_older_models_get_either_a_temperature_or_a_top_p() -> None:
    warm = Sampling(temperature=1.5, top_p=0.5, seed=1)
    assert options(OLD, warm) == {"max_tokens": 8192, "temperature": 1.0}
    assert options(OLD, Sampling(top_p=0.5)) == {"max_tokens": 8192, "top_p": 0.5}


@pytest.mark.parametrize(
    ("effort", "longest", "budget"),
    [("low", 8192, 2048), ("high", 8192, 4096), ("high", 64000, 16384), ("minimal", 8192, 1024)],
)
def test_older_models_get_a_token_budget_for_reasoning(
    effort: str, longest: int, budget: int
) -> None:
    found = options(OLD, Sampling(reasoning_effort=effort, max_tokens=longest, temperature=0.0))
    assert found == {
        "max_tokens": longest,
        "thinking": {"type": "enabled", "budget_tokens": budget},
    }


@pytest.mark.parametrize(("effort", "longest"), [("none", 8192), ("odd", 8192), ("low", 1024)])
def test_reasoning_is_off_without_an_effort_or_enough_tokens(effort: str, longest: int) -> None:
    found = options(OLD, Sampling(reasoning_effort=effort, max_tokens=longest))
    assert found == {"max_tokens": longest}


def test_newer_models_get_an_effort_and_no_sampling_options() -> None:
    warm = Sampling(temperature=0.5, top_p=0.5)
    assert options(NEW, warm) == {"max_tokens": 8192}
    found = options(NEW, Sampling(reasoning_effort="minimal"))
    assert found["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert found["output_config"] == {"effort": "low"}
