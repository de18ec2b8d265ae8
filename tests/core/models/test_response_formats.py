"""Each wire format encodes a request for structured output in the form that its servers expect."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hermes.core.models.anthropic import AnthropicMessages
from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.openai_responses import OpenAIResponses
from hermes.core.models.response_formats import enforced, format_instruction
from hermes.testing.structured_contract import (
    ANY_OBJECT,
    SCHEMA,
    WANTED,
    StructuredWireContract,
)
from hermes.testing.upstream import choice_of, request_to
from hermes.testing.vendors import check
from hermes.types.models import WireFormat
from hermes.types.profile import Quirks


def sse(*payloads: object) -> bytes:
    return b"".join(b"data: %b\n\n" % msgspec.json.encode(payload) for payload in payloads)


class TestChat(StructuredWireContract):
    def wire(self) -> WireFormat:
        return OpenAIChat()

    def check(self, body: bytes) -> None:
        check("chat", body)

    def asked(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        form = body.get("response_format")
        return form and {"type": form["type"], **form.get("json_schema", {})}

    def told_first(self, body: Mapping[str, Any]) -> str:
        return str(body["messages"][0]["content"])

    def stream(self, text: str) -> bytes:
        return sse(
            {"choices": [{"index": 0, "delta": {"content": text}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        )


class TestResponses(StructuredWireContract):
    def wire(self) -> WireFormat:
        return OpenAIResponses()

    def check(self, body: bytes) -> None:
        check("responses", body)

    def asked(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = body.get("text", {}).get("format")
        return found

    def told_first(self, body: Mapping[str, Any]) -> str:
        return str(body["instructions"])

    def stream(self, text: str) -> bytes:
        return sse(
            {"type": "response.output_text.delta", "delta": text},
            {"type": "response.completed", "response": {"status": "completed"}},
        )


class TestAnthropic(StructuredWireContract):
    objects = False

    def wire(self) -> WireFormat:
        return AnthropicMessages()

    def check(self, body: bytes) -> None:
        check("anthropic", body)

    def asked(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = body.get("output_config", {}).get("format")
        return found

    def told_first(self, body: Mapping[str, Any]) -> str:
        return "\n\n".join(block["text"] for block in body["system"])

    def stream(self, text: str) -> bytes:
        return sse(
            {"type": "content_block_start", "content_block": {"type": "text", "text": text}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        )


def test_the_name_description_and_strictness_of_a_schema_are_passed_on() -> None:
    wanted = replace(WANTED, description="A city.", strict=False)
    request = replace(request_to(choice_of("chat")), response_format=wanted)
    schema = msgspec.json.decode(SCHEMA)
    fields = {"name": "city", "schema": schema, "description": "A city.", "strict": False}
    chat = msgspec.json.decode(OpenAIChat().body(request))
    assert chat["response_format"] == {"type": "json_schema", "json_schema": fields}
    responses = msgspec.json.decode(OpenAIResponses().body(request))
    assert responses["text"] == {"format": {"type": "json_schema", **fields}}


def test_without_schema_support_the_schema_is_in_the_prompt_and_an_object_is_enforced() -> None:
    choice = replace(choice_of("chat"), quirks=Quirks(structured=("json_object",)))
    request = replace(request_to(choice), response_format=WANTED)
    form = enforced(request)
    assert form == ANY_OBJECT
    assert SCHEMA in format_instruction(WANTED, form)


@pytest.mark.parametrize("effort", [None, "high"])
def test_the_effort_and_the_output_format_are_sent_together_to_anthropic(
    effort: str | None,
) -> None:
    quirks = Quirks(reasoning="effort")
    request = replace(
        request_to(replace(choice_of("anthropic"), quirks=quirks)), response_format=WANTED
    )
    request = replace(request, sampling=replace(request.sampling, reasoning_effort=effort))
    body = AnthropicMessages().body(request)
    check("anthropic", body)
    config = msgspec.json.decode(body)["output_config"]
    assert config.get("effort") == effort
    assert config["format"]["schema"] == msgspec.json.decode(SCHEMA)
    plain = AnthropicMessages().body(replace(request, response_format=None))
    assert b'"format"' not in plain, "requests share no state"
