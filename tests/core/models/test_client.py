"""The client calls models over HTTP, and reports the errors of faulty servers."""

from collections.abc import Mapping
from pathlib import Path

import aiohttp
import pytest
from msgspec.structs import replace

from hermes.testing.model import FakeModel
from hermes.testing.scripted import is_complete
from hermes.testing.upstream import (
    PROVIDER_KEY,
    STREAM,
    answering,
    ask,
    choice_of,
    json_response,
    model_client,
    request_to,
)
from hermes.types.errors import ConfigError, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.events import AgentEvent, SegmentEnded, TextDelta
from hermes.types.messages import UserMessage
from hermes.types.models import ModelRequest

PAYLOADS = Path(__file__).with_name("payloads")
TEXTS: Mapping[str, bytes] = {
    "chat": (PAYLOADS / "chat_openai_text.sse").read_bytes(),
    "responses": (PAYLOADS / "responses_text.sse").read_bytes(),
    "anthropic": (PAYLOADS / "anthropic_text.sse").read_bytes(),
}


async def failure(response: bytes) -> HermesError:
    async with answering(response) as base_url:
        with pytest.raises(HermesError) as caught:
            await ask(request_to(choice_of("chat", base_url)))
    assert PROVIDER_KEY not in str(caught.value)
    assert "acme" in str(caught.value)
    return caught.value


@pytest.mark.parametrize("spoken", TEXTS)
@pytest.mark.parametrize("chosen", TEXTS)
async def test_the_model_choice_decides_the_wire_format(chosen: str, spoken: str) -> None:
    async with answering(STREAM + TEXTS[spoken]) as base_url:
        request = request_to(choice_of(chosen, base_url))
        if chosen == spoken:
            assert (await ask(request))[0].text
        else:
            with pytest.raises(Disconnected):
                await ask(request)


async def test_the_error_for_an_unknown_wire_format_lists_the_known_formats() -> None:
    with pytest.raises(ConfigError, match="'morse' is unknown: choose one of chat, responses,"):
        await ask(request_to(choice_of("morse")))


async def test_no_compression_is_requested() -> None:
    heads: list[bytes] = []
    async with answering(STREAM + TEXTS["chat"], heads) as base_url:
        await ask(request_to(choice_of("chat", base_url)))
    assert b"\r\naccept-encoding: identity\r\n" in heads[0]
    assert b"\r\ncontent-type: application/json\r\n" in heads[0]


async def test_the_error_for_a_web_page_as_an_answer_gives_advice() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>"
    error = await failure(page)
    assert isinstance(error, Rejected)
    assert "base_url" in str(error)


async def test_a_redirect_is_not_followed() -> None:
    async with answering(STREAM + TEXTS["chat"]) as elsewhere:
        moved = json_response(b"", 307, b"Location: %b/x\r\n" % elsewhere.encode())
        assert isinstance(await failure(moved), Rejected)


async def test_the_error_of_a_refused_request_contains_the_time_to_retry() -> None:
    body = b'{"error":{"message":"slow"}}'
    error = await failure(json_response(body, 429, b"Retry-After: 7\r\n"))
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7.0


async def test_a_closed_port_counts_as_a_lost_connection() -> None:
    async with answering(b"") as base_url:
        pass
    with pytest.raises(Disconnected, match="can't be reached"):
        await ask(request_to(choice_of("chat", base_url)))


def chatting(model: FakeModel, said: str, *, live: bool = True) -> ModelRequest:
    request = request_to(choice_of("chat", model.base_url), UserMessage(text=said))
    return replace(request, live=live)


async def test_a_server_that_sends_nothing_counts_as_a_lost_connection() -> None:
    async with FakeModel() as model:
        with pytest.raises(Disconnected, match="in time"):
            await ask(chatting(model, "hang"), read_timeout=0.05)


async def test_a_connection_is_reused() -> None:
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        client = model_client(session)
        for _ in range(3):
            message = await client.complete(chatting(model, "hello"), lambda _event: None)
            assert is_complete(message.text)
        assert len(model.connections) == 1


@pytest.mark.parametrize("live", [True, False])
async def test_a_connection_that_the_server_cuts_counts_as_a_lost_connection(live: bool) -> None:
    events: list[AgentEvent] = []
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        request = chatting(model, "tokens:30 cut:10", live=live)
        with pytest.raises(Disconnected):
            await model_client(session).complete(request, events.append)
    assert SegmentEnded() not in events


@pytest.mark.parametrize("said", ["hello tokens:40", "tokens:30 delay:0.01", "tokens:40000"])
async def test_an_answer_that_nobody_watches_live_has_the_same_text_in_fewer_pieces(
    said: str,
) -> None:
    pieces: dict[bool, list[AgentEvent]] = {True: [], False: []}
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        for live, heard in pieces.items():
            request = chatting(model, said, live=live)
            message = await model_client(session).complete(request, heard.append)
            assert is_complete(message.text)
            assert "".join(e.text for e in heard if isinstance(e, TextDelta)) == message.text
    texts = {live: sum(isinstance(e, TextDelta) for e in seen) for live, seen in pieces.items()}
    assert texts[False] <= texts[True]


@pytest.mark.parametrize("base_url", ["http://me:word@127.0.0.1:9/v1", "http://", "no address"])
async def test_an_address_that_can_not_be_called_is_explained(base_url: str) -> None:
    with pytest.raises(Rejected, match="can't be called at its base_url"):
        await ask(request_to(choice_of("chat", base_url)))
