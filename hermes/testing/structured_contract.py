"""The contract of wire formats for requests that ask for an answer in JSON."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import pytest
from msgspec.structs import replace

from hermes.core.models.client import ModelClient
from hermes.testing.examples import example_of
from hermes.testing.turns import Notebook, a_turn, an_agent
from hermes.testing.upstream import STREAM, choice_of, request_to
from hermes.text.json_schema import json_problem
from hermes.types.events import AgentEvent, SegmentEnded, TextDelta
from hermes.types.messages import ResponseFormat
from hermes.types.models import WireFormat
from hermes.types.profile import Quirks
from hermes.types.turns import Completed, Outcome

SCHEMA = msgspec.json.encode(
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "people": {"type": "integer"},
            "sights": {"type": "array", "items": {"$ref": "#/$defs/Sight"}},
        },
        "required": ["city", "people", "sights"],
        "additionalProperties": False,
        "$defs": {
            "Sight": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": False,
            }
        },
    }
).decode()
WANTED = ResponseFormat(kind="json_schema", schema=SCHEMA, name="city", strict=True)
ANY_OBJECT = ResponseFormat(kind="json_object")
PLAIN_WORDS = "I would rather talk."


class StructuredWireContract:
    """Tests the two ways to request an answer in JSON: with a field of the wire format, and with an
    instruction in the prompt."""

    objects: bool = True
    """Whether the wire format has a field that requests a JSON object without a schema."""

    def wire(self) -> WireFormat:
        raise NotImplementedError

    def check(self, body: bytes) -> None:
        """Raises ValueError if the vendor would refuse the body of a request."""
        raise NotImplementedError

    def asked(self, body: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Returns the part of the request body that sets the format of the answer, with the schema
        under the key `schema`. Returns None if the body has no such part."""
        raise NotImplementedError

    def told_first(self, body: Mapping[str, Any]) -> str:
        """Returns the system prompt in the body of a request."""
        raise NotImplementedError

    def stream(self, text: str) -> bytes:
        """Returns the response stream of an answer with this text."""
        raise NotImplementedError

    def test_a_schema_is_requested_in_the_field_of_the_wire_format(self) -> None:
        body = self._body(WANTED, Quirks())
        asked = self.asked(body)
        assert asked is not None
        assert asked["schema"] == msgspec.json.decode(SCHEMA)
        assert "JSON" not in self.told_first(body)

    def test_an_answer_that_is_any_json_object_can_be_requested(self) -> None:
        body = self._body(ANY_OBJECT, Quirks())
        assert (self.asked(body) is not None) == self.objects
        assert "one JSON object" in self.told_first(body), "some vendors refuse it otherwise"

    @pytest.mark.parametrize("wanted", [WANTED, ANY_OBJECT], ids=["schema", "object"])
    def test_the_prompt_describes_the_format_if_the_endpoint_can_not_enforce_it(
        self, wanted: ResponseFormat
    ) -> None:
        body = self._body(wanted, Quirks(structured=()))
        assert self.asked(body) is None
        assert wanted.schema in self.told_first(body)
        assert "JSON" in self.told_first(body)

    def test_a_request_for_text_does_not_mention_a_format(self) -> None:
        body = self._body(None, Quirks())
        assert self.asked(body) is None
        assert "JSON" not in self.told_first(body)

    @pytest.mark.parametrize("structured", [Quirks().structured, ("json_object",), ()])
    async def test_an_agent_answers_with_json_that_conforms_to_the_schema(
        self, structured: tuple[Any, ...]
    ) -> None:
        outcome, events = await self._run(WANTED, Quirks(structured=structured))
        assert isinstance(outcome, Completed)
        text = outcome.message.text
        assert json_problem(SCHEMA, text) == ""
        said = [event for event in events if isinstance(event, TextDelta | SegmentEnded)]
        assert said == [TextDelta(text=text), SegmentEnded()]

    async def test_the_fake_model_server_answers_in_json_only_if_the_request_has_the_schema(
        self,
    ) -> None:
        outcome, _ = await self._run(None, Quirks())
        assert isinstance(outcome, Completed)
        assert outcome.message.text == PLAIN_WORDS

    def _body(self, wanted: ResponseFormat | None, quirks: Quirks) -> Mapping[str, Any]:
        choice = replace(choice_of(self.wire().name), quirks=quirks)
        body = self.wire().body(replace(request_to(choice), response_format=wanted))
        self.check(body)
        found: Mapping[str, Any] = msgspec.json.decode(body)
        return found

    async def _run(
        self, wanted: ResponseFormat | None, quirks: Quirks
    ) -> tuple[Outcome, list[AgentEvent]]:
        events: list[AgentEvent] = []
        async with self._upstream() as base_url, aiohttp.ClientSession() as session:
            choice = replace(choice_of(self.wire().name, base_url), quirks=quirks)
            client = ModelClient(session, {self.wire().name: self.wire()})
            agent = an_agent(client, (), choice=choice)
            turn = replace(a_turn(), response_format=wanted)
            return await agent.run(turn, events.append, Notebook()), events

    @asynccontextmanager
    async def _upstream(self) -> AsyncIterator[str]:
        """Runs a server that answers in JSON only if the request contains the schema. Yields the
        base URL of the server."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        body = await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
        writer.write(STREAM + self.stream(self._answer(body)))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    def _answer(self, body: bytes) -> str:
        self.check(body)
        decoded = msgspec.json.decode(body)
        asked = self.asked(decoded) or {}
        carried = bool(asked.get("schema")) or SCHEMA in self.told_first(decoded)
        if not carried:
            return PLAIN_WORDS
        return msgspec.json.encode(example_of(msgspec.json.decode(SCHEMA))).decode()
