"""Lists of models are requested from providers and read."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import anyio.lowlevel
import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json
from msgspec.structs import replace

from hermes.core.models.model_cache import ListedModel, ModelCache
from hermes.core.models.model_discovery import (
    FRESH_LIST,
    REFRESH_PERIOD,
    ModelDiscovery,
    read_entry,
)
from hermes.core.models.wires import builtin_wire_formats, wire_formats
from hermes.testing.model import FakeModel
from hermes.types.errors import AuthFailed, Disconnected, Rejected
from hermes.types.profile import ModelChoice, Price, Quirks

AWAY = ModelChoice(provider="fake", model="", base_url="http://127.0.0.1:9/v1")

NOWHERE = ModelCache(Path("/nonexistent"))


def discovery(session: aiohttp.ClientSession, cache: ModelCache = NOWHERE) -> ModelDiscovery:
    return ModelDiscovery(session, wire_formats(builtin_wire_formats()), cache)


class Directory:
    """A fake server with a list of models. `seen` has the path and the headers of each request."""

    def __init__(self, body: object, status: int = 200) -> None:
        self.body, self.status = body, status
        self.seen: list[tuple[str, Mapping[str, str]]] = []

    async def answer(self, request: web.Request) -> web.Response:
        self.seen.append((request.path_qs, request.headers))
        return web.json_response(self.body, status=self.status)


@asynccontextmanager
async def serving(directory: Directory) -> AsyncIterator[ModelChoice]:
    application = web.Application()
    application.router.add_get("/{path:.*}", directory.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield replace(AWAY, base_url=f"{site.name}/api/v1", api_key="secret")
    finally:
        await runner.cleanup()


async def listed(body: object) -> tuple[ListedModel, ...]:
    async with serving(Directory(body)) as endpoint, aiohttp.ClientSession() as session:
        return await discovery(session).fetch(endpoint)


async def test_an_address_with_a_credential_beside_the_key_is_rejected() -> None:
    endpoint = replace(AWAY, base_url="http://user:word@127.0.0.1:9/v1", api_key="secret")
    async with aiohttp.ClientSession() as session:
        with pytest.raises(Rejected, match="can't be called at its base_url"):
            await discovery(session).fetch(endpoint)


async def test_an_openai_list_is_requested_with_the_key() -> None:
    directory = Directory({"object": "list", "data": [{"id": "a"}, {"id": "b"}]})
    async with serving(directory) as endpoint, aiohttp.ClientSession() as session:
        assert await discovery(session).fetch(endpoint) == (
            ListedModel(id="a"),
            ListedModel(id="b"),
        )
    ((path, headers),) = directory.seen
    assert path == "/api/v1/models"
    assert headers["Authorization"] == "Bearer secret"


async def test_an_anthropic_list_is_requested_with_its_headers() -> None:
    directory = Directory({"data": [{"type": "model", "id": "c", "max_input_tokens": 200_000}]})
    async with serving(directory) as endpoint, aiohttp.ClientSession() as session:
        asked = replace(endpoint, wire="anthropic")
        assert await discovery(session).fetch(asked) == (
            ListedModel(id="c", context_length=200_000),
        )
    ((path, headers),) = directory.seen
    assert path == "/api/v1/models?limit=1000"
    assert headers["x-api-key"] == "secret"
    assert headers["anthropic-version"] == "2023-06-01"
    assert "Authorization" not in headers


async def test_openrouter_lists_context_lengths_and_prices() -> None:
    pricing = {"prompt": "0.000002", "completion": "0.00001", "input_cache_read": "0.0000002"}
    known = {"id": "a/b", "context_length": 1000, "pricing": {**pricing, "image": "0"}}
    varying = {
        "id": "auto",
        "context_length": 2000,
        "pricing": {"prompt": "-1", "completion": "-1"},
    }
    free = {"id": "free", "pricing": {"prompt": "0", "completion": "0"}}
    assert await listed({"data": [known, varying, free]}) == (
        ListedModel(id="a/b", context_length=1000, price=Price(input=2.0, output=10.0, cached=0.2)),
        ListedModel(id="auto", context_length=2000),
        ListedModel(id="free", price=Price(input=0.0, output=0.0)),
    )


@pytest.mark.parametrize(
    "word", ["context_window", "max_context_length", "max_model_len", "max_input_tokens"]
)
async def test_every_name_for_the_context_length_is_recognized(word: str) -> None:
    assert await listed({"data": [{"id": "a", word: 4096}]}) == (
        ListedModel(id="a", context_length=4096),
    )


async def test_a_list_without_an_envelope_and_with_invalid_entries_is_read() -> None:
    entries = [
        {"id": "models/x"},
        {"id": 7},
        "nonsense",
        {"id": "b", "pricing": {"input": 1}},
    ]
    assert await listed(entries) == (ListedModel(id="models/x"), ListedModel(id="b"))


async def test_a_prefix_that_only_occurs_in_the_list_is_removed() -> None:
    quirks = Quirks(list_prefix="models/")
    body = {"data": [{"id": "models/x"}, {"id": "y"}]}
    async with serving(Directory(body)) as endpoint, aiohttp.ClientSession() as session:
        found = await discovery(session).fetch(replace(endpoint, quirks=quirks))
    assert found == (ListedModel(id="x"), ListedModel(id="y"))


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, {}, AuthFailed),
        (500, {}, Disconnected),
        (404, {"detail": "not found"}, Rejected),
        (200, "<html>", Rejected),
        (302, {}, Rejected),
    ],
)
async def test_a_server_without_a_list_raises_one_of_our_errors(
    status: int, body: object, error: type[Exception]
) -> None:
    async with serving(Directory(body, status)) as endpoint, aiohttp.ClientSession() as session:
        with pytest.raises(error):
            await discovery(session).fetch(endpoint)


async def test_a_server_that_does_not_listen_raises_disconnected() -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(Disconnected, match="can't be reached"):
            await discovery(session).fetch(AWAY)


async def test_a_list_is_requested_once_a_day(tmp_path: Path) -> None:
    now = 1000.0
    cache = ModelCache(tmp_path, clock=lambda: now)
    directory = Directory({"data": [{"id": "a"}]})
    async with serving(directory) as endpoint, aiohttp.ClientSession() as session:
        await discovery(session, cache).current(endpoint)
        now += FRESH_LIST - 1
        await discovery(session, cache).current(endpoint)
        assert len(directory.seen) == 1
        now += 2
        await discovery(session, cache).current(endpoint)
        await discovery(session, cache).renew(endpoint)
    assert len(directory.seen) == 3


async def test_an_old_list_is_used_without_a_network(tmp_path: Path) -> None:
    now = 1000.0
    cache = ModelCache(tmp_path, clock=lambda: now)
    kept = cache.save(AWAY, (ListedModel(id="a"),))
    now += 10 * FRESH_LIST
    async with aiohttp.ClientSession() as session:
        assert await discovery(session, cache).current(AWAY) == kept
        with pytest.raises(Disconnected):
            await discovery(session, cache).renew(AWAY)
        with pytest.raises(Disconnected):
            await discovery(session, cache).current(replace(AWAY, provider="other"))
    assert cache.last(AWAY) == kept


async def test_lists_are_refreshed_in_the_background(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    slept: list[float] = []
    cache = ModelCache(tmp_path)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        scope.cancel()
        await anyio.lowlevel.checkpoint()

    async with FakeModel() as server, aiohttp.ClientSession() as session:
        endpoint = replace(AWAY, provider="other", base_url=server.base_url)
        with anyio.CancelScope() as scope:
            await discovery(session, cache).refresh([AWAY, endpoint], sleep)
    assert slept == [REFRESH_PERIOD]
    kept = cache.last(endpoint)
    assert kept
    assert kept.models == (ListedModel(id="fake"),)
    assert caplog.records == []


@given(st.recursive(st.none() | st.text() | st.integers() | st.floats(), st.lists))
def test_every_value_is_read_as_a_valid_price_or_as_none(said: object) -> None:
    entry = Raw(json.encode({"id": "a", "pricing": {"prompt": said, "completion": "0.1"}}))
    found = read_entry(entry)
    assert found
    assert found.price is None or 0 <= found.price.input < 1_000_000


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"input_modalities": ["text", "image", "file"]}, ("image", "file")),
        ({"input_modalities": ["text"]}, ()),
        ({"modality": "text->text"}, None),
        ("text", None),
    ],
)
async def test_openrouter_lists_the_attachments_that_a_model_accepts(
    said: object, expected: tuple[str, ...] | None
) -> None:
    (model,) = await listed({"data": [{"id": "a/b", "architecture": said}]})
    assert model.attachments == expected
