"""The call that every wire format makes, against servers that behave and others."""

import asyncio
from pathlib import Path

import aiohttp
import anyio
import pytest
from msgspec.structs import replace

from hermes.core.models.answer import Answer
from hermes.core.models.stream import Events
from hermes.core.models.wires import Wires
from hermes.testing.model import FakeModel
from hermes.testing.scripted import is_complete
from hermes.testing.upstream import (
    KEY,
    STREAM,
    answering,
    ask,
    ask_raw,
    choice_of,
    json_response,
    request_to,
)
from hermes.types.errors import Disconnected, HermesError, RateLimited, Rejected
from hermes.types.events import AgentEvent, SegmentEnded, TextDelta
from hermes.types.messages import UserMessage
from hermes.types.profile import Wire
from hermes.types.protocols import ModelRequest

PAYLOADS = Path(__file__).with_name("payloads")
TEXTS: dict[Wire, bytes] = {
    "chat": (PAYLOADS / "chat_openai_text.sse").read_bytes(),
    "responses": (PAYLOADS / "responses_text.sse").read_bytes(),
    "anthropic": (PAYLOADS / "anthropic_text.sse").read_bytes(),
}
every_wire = pytest.mark.parametrize("wire", TEXTS)


async def failure(wire: Wire, response: bytes) -> HermesError:
    with pytest.raises(HermesError) as caught:
        await ask_raw(wire, response)
    assert KEY not in str(caught.value)
    assert "acme" in str(caught.value)
    return caught.value


@every_wire
async def test_an_answer_is_streamed_and_returned_whole(wire: Wire) -> None:
    message, events = await ask_raw(wire, STREAM + TEXTS[wire])
    assert message.text == "Grüß Gott 👋"
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == message.text
    assert events[-1] == SegmentEnded()


SENT: dict[Wire, tuple[bytes, ...]] = {
    "chat": (b"post /v1/chat/completions ", b"authorization: bearer sk-secret\r\n"),
    "responses": (b"post /v1/responses ", b"authorization: bearer sk-secret\r\n"),
    "anthropic": (
        b"post /v1/messages ",
        b"x-api-key: sk-secret\r\n",
        b"anthropic-version: 2023-06-01\r\n",
    ),
}


@every_wire
@pytest.mark.parametrize("end", ["", "/"])
async def test_the_key_goes_to_the_right_address(wire: Wire, end: str) -> None:
    heads: list[bytes] = []
    async with answering(STREAM + TEXTS[wire], heads) as base_url:
        await ask(request_to(choice_of(wire, base_url + end)))
        await ask(request_to(replace(choice_of(wire, base_url), api_key="")))
    with_key, without = heads
    assert all(part in with_key for part in SENT[wire])
    assert b"authorization" not in without
    assert b"x-api-key" not in without


async def test_anthropics_address_may_lack_the_version() -> None:
    heads: list[bytes] = []
    async with answering(STREAM + TEXTS["anthropic"], heads) as base_url:
        place = base_url.removesuffix("/v1")
        await ask(request_to(choice_of("anthropic", f"{place}/anthropic")))
    assert heads[0].startswith(b"post /anthropic/v1/messages ")


@every_wire
async def test_a_cut_stream_is_a_lost_connection(wire: Wire) -> None:
    half = TEXTS[wire][: len(TEXTS[wire]) // 2]
    for cut in (b"", half, half.rpartition(b"data:")[0]):
        assert isinstance(await failure(wire, STREAM + cut), Disconnected)


@every_wire
async def test_once_the_model_has_finished_nothing_is_lost(wire: Wire) -> None:
    text = TEXTS[wire] + b"data: 7\n\n"
    chunked = STREAM.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    never_ended = chunked + b"%x\r\n%b\r\n" % (len(text), text)
    message, events = await ask_raw(wire, never_ended)
    assert message.text == "Grüß Gott 👋"
    assert events[-1] == SegmentEnded()


@every_wire
async def test_garbage_is_a_lost_connection(wire: Wire) -> None:
    for garbage in (b"7", b'{"type":7,"choices":7}', b'{"type":"\xff"}', b"[" * 9999, b"nonsense"):
        assert isinstance(await failure(wire, STREAM + b"data: " + garbage), Disconnected)
        assert isinstance(await failure(wire, json_response(garbage)), Disconnected)


@every_wire
async def test_a_line_without_end_is_refused(wire: Wire) -> None:
    assert isinstance(await failure(wire, STREAM + b"data: " + b"x" * (5 << 20)), Rejected)


@every_wire
async def test_a_web_page_is_refused_with_advice(wire: Wire) -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>"
    error = await failure(wire, page)
    assert isinstance(error, Rejected)
    assert "base_url" in str(error)


@every_wire
async def test_a_redirect_is_not_followed(wire: Wire) -> None:
    async with answering(STREAM + TEXTS[wire]) as elsewhere:
        moved = json_response(b"", 307, b"Location: %b/x\r\n" % elsewhere.encode())
        assert isinstance(await failure(wire, moved), Rejected)


@every_wire
async def test_an_error_that_comes_as_an_answer_is_one(wire: Wire) -> None:
    said = b'{"type":"error","error":{"message":"slow down","code":429}}'
    assert isinstance(await failure(wire, json_response(said)), RateLimited)


@every_wire
async def test_a_refusal_says_when_to_come_back(wire: Wire) -> None:
    body = b'{"error":{"message":"slow"}}'
    error = await failure(wire, json_response(body, 429, b"Retry-After: 7\r\n"))
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7.0


@every_wire
async def test_nobody_listening_is_a_lost_connection(wire: Wire) -> None:
    async with answering(b"") as base_url:
        pass
    with pytest.raises(Disconnected, match="out of reach"):
        await ask(request_to(choice_of(wire, base_url)))


@every_wire
async def test_cancelling_closes_the_connection_at_once(wire: Wire) -> None:
    spoke, hung_up = anyio.Event(), anyio.Event()
    begun, _, _ = TEXTS[wire].partition(b" Gott")

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM + begun)
        while await reader.read(1 << 16):
            pass
        hung_up.set()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, aiohttp.ClientSession() as session:
        async with anyio.create_task_group() as turn:
            request = request_to(choice_of(wire, base_url))
            turn.start_soon(Wires(session).complete, request, lambda _event: spoke.set())
            await spoke.wait()
            turn.cancel_scope.cancel()
        with anyio.fail_after(5):
            await hung_up.wait()


def chatting(model: FakeModel, said: str, *, live: bool = True) -> ModelRequest:
    request = request_to(choice_of("chat", model.base_url), UserMessage(text=said))
    return replace(request, live=live)


async def test_silence_is_a_lost_connection() -> None:
    async with FakeModel() as model:
        with pytest.raises(Disconnected, match="in time"):
            await ask(chatting(model, "hang"), silence=0.05)


async def test_a_connection_is_used_again() -> None:
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        wires = Wires(session)
        for _ in range(3):
            message = await wires.complete(chatting(model, "hello"), lambda _event: None)
            assert is_complete(message.text)
        assert len(model.connections) == 1


@pytest.mark.parametrize("live", [True, False])
async def test_a_connection_cut_by_the_server_is_a_lost_connection(live: bool) -> None:
    events: list[AgentEvent] = []
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        request = chatting(model, "tokens:30 cut:10", live=live)
        with pytest.raises(Disconnected):
            await Wires(session).complete(request, events.append)
    assert SegmentEnded() not in events


@pytest.mark.parametrize("said", ["hello tokens:40", "tokens:30 delay:0.01", "tokens:40000"])
async def test_an_answer_that_nobody_reads_along_is_the_same_in_fewer_pieces(said: str) -> None:
    pieces: dict[bool, list[AgentEvent]] = {True: [], False: []}
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        for live, heard in pieces.items():
            request = chatting(model, said, live=live)
            message = await Wires(session).complete(request, heard.append)
            assert is_complete(message.text)
            assert "".join(e.text for e in heard if isinstance(e, TextDelta)) == message.text
    texts = {live: sum(isinstance(e, TextDelta) for e in seen) for live, seen in pieces.items()}
    assert texts[False] <= texts[True]


class Collecting:
    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def take(self, payload: bytes) -> None:
        self.taken.append(payload)


def test_only_data_is_read_however_it_is_written() -> None:
    collecting = Collecting()
    events = Events(Answer(choice_of("chat"), lambda _event: None), collecting)
    events.feed(b": ping\nevent: x\ndata: 1\r\n\r\ndata:2\nid: 7\ndata: [DONE]\ndata:\ndata: 3")
    assert collecting.taken == [b"1", b"2"]
    events.end()
    assert collecting.taken == [b"1", b"2", b"3"]


@pytest.mark.parametrize("base_url", ["http://me:word@127.0.0.1:9/v1", "http://", "no address"])
async def test_an_address_that_can_not_be_asked_is_explained(base_url: str) -> None:
    with pytest.raises(Rejected, match="can't be asked at its base_url"):
        await ask(request_to(choice_of("chat", base_url)))
