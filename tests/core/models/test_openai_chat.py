"""Requests in the wire format of chat completions have the right body."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from hermes.core.models.openai_chat import OpenAIChat
from hermes.testing.model import FakeModel
from hermes.testing.scripted import ChatRequest, is_complete, refusal
from hermes.testing.upstream import LOOK, PROVIDER_KEY, ask, choice_of, request_to
from hermes.testing.vendors import check
from hermes.testing.wire_formats import CALLS, RESULTS, WireFormatContract
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

CHOICE = choice_of("chat")
SIGNED = '{"reasoning_content":"hm","extra_content":{"1":{"google":{"thought_signature":"x"}}}}'
PAYLOADS = Path(__file__).with_name("payloads")


class TestOpenAIChat(WireFormatContract):
    mistakes = (
        (b'"tool_call_id":"t_1_0"', b'"tool_call_id":"t_9_9"'),
        (b'"type":"function","function":{"name":"look"', b'"type":"f","function":{"name":"look"'),
        (b'"content":"sky"', b'"content":[{"type":"text"}]'),
        (b'"arguments":"{}"', b'"arguments":7'),
    )
    error = b'{"error":{"message":"slow down","code":429}}'

    def wire(self) -> WireFormat:
        return OpenAIChat()

    def check(self, body: bytes) -> None:
        check("chat", body)

    def recordings(self) -> Sequence[Path]:
        return sorted(PAYLOADS.glob("chat_*"))

    def recorded_text(self) -> bytes:
        return (PAYLOADS / "chat_openai_text.sse").read_bytes()

    def recorded_calls(self) -> bytes:
        return (PAYLOADS / "chat_openai_calls.sse").read_bytes()

    def recorded_cut(self) -> bytes:
        return self.recorded_calls().replace(
            b'"finish_reason":"tool_calls"', b'"finish_reason":"length"'
        )

    def echo(self, text: str) -> str:
        return msgspec.json.encode({"reasoning_content": text}).decode()


def sent(request: ModelRequest) -> dict[str, object]:
    return msgspec.json.decode(OpenAIChat().body(request), type=dict[str, object])


def messages(request: ModelRequest) -> list[dict[str, object]]:
    return msgspec.convert(sent(request)["messages"], list[dict[str, object]])


def test_only_options_that_are_set_are_sent() -> None:
    plain = replace(request_to(CHOICE), tools=())
    assert sent(plain) == {
        "stream": True,
        "stream_options": {"include_usage": True},
        "model": "some-1",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
        ],
    }
    sampling = Sampling(temperature=0.0, max_tokens=5, stop=("a", '"max_tokens":'))
    chosen = sent(replace(plain, sampling=sampling))
    added = {name: value for name, value in chosen.items() if name not in sent(plain)}
    assert added == {"temperature": 0.0, "max_tokens": 5, "stop": ["a", '"max_tokens":']}
    limited = replace(plain, choice=replace(CHOICE, max_tokens=7))
    assert sent(limited)["max_tokens"] == 7


def test_ephemeral_text_is_in_the_system_message() -> None:
    first, *_ = messages(replace(request_to(CHOICE), ephemeral="today"))
    assert first == {"role": "system", "content": "be brief\n\ntoday"}
    first, *_ = messages(replace(request_to(CHOICE), system=""))
    assert first["role"] == "user"


def test_a_provider_may_use_another_name_for_the_token_limit() -> None:
    there = replace(CHOICE, quirks=Quirks(max_tokens_field="max_completion_tokens"))
    sampling = Sampling(max_tokens=5, stop=('"max_tokens":',))
    asked = sent(replace(request_to(there), sampling=sampling))
    assert asked["max_completion_tokens"] == 5
    assert asked["stop"] == ['"max_tokens":']
    assert "max_tokens" not in asked


def test_reasoning_is_sent_back_with_the_calls() -> None:
    echo = Echo(wire="chat", model=CHOICE.model, body=SIGNED)
    said = AssistantMessage(calls=CALLS, echo=echo)
    talk: tuple[Message, ...] = (UserMessage(text="hi"), said, *RESULTS)
    _, _, calling, *_ = messages(request_to(CHOICE, *talk))
    assert calling["reasoning_content"] == "hm"
    first, second = msgspec.convert(calling["tool_calls"], list[dict[str, object]])
    assert "extra_content" not in first
    assert second["extra_content"] == {"google": {"thought_signature": "x"}}
    _, _, calling, *_ = messages(request_to(replace(CHOICE, model="other"), *talk))
    assert "reasoning_content" not in calling


def test_ids_have_the_length_that_the_provider_requires() -> None:
    strict = replace(CHOICE, quirks=Quirks(call_id_length=9))
    talk: tuple[Message, ...] = (
        UserMessage(text="hi"),
        AssistantMessage(calls=CALLS),
        *RESULTS,
    )
    body = msgspec.json.decode(OpenAIChat().body(request_to(strict, *talk)), type=ChatRequest)
    assert refusal(body) is None
    made = body.messages[2].tool_calls
    assert made is not None
    ids = [call.id for call in made]
    assert len(set(ids)) == 2
    assert all(len(one) == 9 and one.isalnum() and one.isascii() for one in ids)


async def test_a_strict_server_accepts_a_whole_conversation() -> None:
    talk: tuple[Message, ...] = (
        UserMessage(text="hi", sender="Ann"),
        AssistantMessage(text="", calls=CALLS),
        *RESULTS,
        AssistantMessage(text=""),
        UserMessage(text="look again", sender="Bob"),
        AssistantMessage(
            text="so", calls=(ToolCall(id=CallId("t_2_0"), name="look", arguments="{broken"),)
        ),
        ToolMessage(call=CallId("t_2_0"), text="blue"),
    )
    async with FakeModel(key=PROVIDER_KEY) as model:
        message, _ = await ask(request_to(choice_of("chat", model.base_url), *talk))
        assert is_complete(message.text)
        assert "[Bob]" in message.text
        assert "blue" in message.text
        assert model.stats.refused == {}
        request = model.requests[0]
        assert [m.role for m in request.messages[:3]] == ["system", "user", "assistant"]
        made = request.messages[7].tool_calls
        assert made is not None
        assert made[0].function.arguments == '{"invalid_json":"{broken"}'
        assert request.tools is not None
        assert request.tools[0].function.name == LOOK.name


async def test_a_wrong_key_is_refused_without_being_quoted() -> None:
    async with FakeModel(key="another") as model:
        with pytest.raises(Exception, match="refused the API key") as caught:
            await ask(request_to(choice_of("chat", model.base_url)))
    assert PROVIDER_KEY not in str(caught.value)
