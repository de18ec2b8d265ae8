"""Requests in the wire format of OpenAI's Responses API have the right body."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from hermes.core.models.openai_responses import OpenAIResponses
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

CHOICE = choice_of("responses")
CALLS = (
    ToolCall(id=CallId("t_1_0"), name="look", arguments='{"at":1}'),
    ToolCall(id=CallId("t_1_1"), name="listen", arguments="{broken"),
)
RESULTS = (
    ToolMessage(call=CALLS[0].id, text="sky"),
    ToolMessage(call=CALLS[1].id, text="", failed=True),
)
THOUGHT = {"type": "reasoning", "id": "rs_0", "summary": [], "encrypted_content": "sealed"}
PAYLOADS = Path(__file__).with_name("payloads")


class TestOpenAIResponses(WireFormatContract):
    mistakes = (
        (b'"arguments"', b'"argument"'),
        (b'"call_id":"t_1_0","output"', b'"call_id":"t_9_9","output"'),
        (b'"output":"sky"', b'"output":7'),
        (b'"strict":false', b'"strict":"no"'),
    )
    error = b'{"type":"error","code":"429","message":"slow down","param":null}'

    def wire(self) -> WireFormat:
        return OpenAIResponses()

    def check(self, body: bytes) -> None:
        check("responses", body)

    def recordings(self) -> Sequence[Path]:
        return sorted(PAYLOADS.glob("responses_*"))

    def recorded_text(self) -> bytes:
        return (PAYLOADS / "responses_text.sse").read_bytes()

    def recorded_calls(self) -> bytes:
        return (PAYLOADS / "responses_reasoning_calls.sse").read_bytes()

    def recorded_cut(self) -> bytes:
        head, end, tail = self.recorded_calls().rpartition(b"event: response.completed")
        tail = tail.replace(b"response.completed", b"response.incomplete")
        tail = tail.replace(b'"status":"completed"', b'"status":"incomplete"', 1)
        details = b'"incomplete_details":{"reason":"max_output_tokens"}'
        return head + end + tail.replace(b'"incomplete_details":null', details)

    def echo(self, text: str) -> str:
        return msgspec.json.encode([[0, THOUGHT | {"encrypted_content": text}]]).decode()


def sent(request: ModelRequest) -> dict[str, object]:
    return msgspec.json.decode(OpenAIResponses().body(request), type=dict[str, object])


def items(*said: Message) -> list[dict[str, object]]:
    return msgspec.convert(sent(request_to(CHOICE, *said))["input"], list[dict[str, object]])


def test_every_message_becomes_an_item() -> None:
    echo = Echo(
        wire="responses",
        model=CHOICE.model,
        body=msgspec.json.encode([[0, THOUGHT], [1, THOUGHT]]).decode(),
    )
    said = AssistantMessage(text="so", calls=CALLS, echo=echo)
    found = items(UserMessage(text="hi", sender="Ann"), said, *RESULTS)
    assert found == [
        {"type": "message", "role": "user", "content": "[Ann] hi"},
        THOUGHT,
        {"type": "message", "role": "assistant", "content": "so"},
        THOUGHT,
        {
            "type": "function_call",
            "call_id": "t_1_0",
            "name": "look",
            "arguments": '{"at":1}',
        },
        {
            "type": "function_call",
            "call_id": "t_1_1",
            "name": "listen",
            "arguments": '{"invalid_json":"{broken"}',
        },
        {"type": "function_call_output", "call_id": "t_1_0", "output": "sky"},
        {"type": "function_call_output", "call_id": "t_1_1", "output": ""},
    ]
    other = replace(said, echo=replace(echo, model="other"))
    assert THOUGHT not in items(UserMessage(text="hi"), other, *RESULTS)


def test_the_provider_stores_nothing_and_gets_only_options_that_are_set() -> None:
    plain = replace(request_to(CHOICE), tools=())
    assert sent(plain) == {
        "model": "some-1",
        "stream": True,
        "store": False,
        "instructions": "be brief",
        "include": ["reasoning.encrypted_content"],
        "input": [{"type": "message", "role": "user", "content": "hi"}],
    }
    sampling = Sampling(
        temperature=0.0, top_p=0.5, max_tokens=5, stop=("a",), seed=1, reasoning_effort="low"
    )
    chosen = sent(replace(plain, sampling=sampling, ephemeral="today"))
    added = {name: value for name, value in chosen.items() if value != sent(plain).get(name)}
    assert added == {
        "instructions": "be brief\n\ntoday",
        "temperature": 0.0,
        "top_p": 0.5,
        "max_output_tokens": 5,
        "reasoning": {"effort": "low"},
    }


def test_reasoning_is_not_requested_from_a_model_that_does_not_reason() -> None:
    plain = replace(CHOICE, quirks=Quirks(reasoning="none"))
    assert "include" not in sent(request_to(plain))
