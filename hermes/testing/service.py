"""A whole service for tests: a gateway, its HTTP server, and a fake model."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
from msgspec.structs import replace

from hermes.app.gateway import GatewayOverrides, open_gateway
from hermes.control.gateway import Gateway
from hermes.entry.http.server import ApiOptions, serve_http
from hermes.settings import load
from hermes.testing.model import FakeModel
from hermes.testing.running import wrapped_store
from hermes.testing.stores import store_settings, store_url
from hermes.testing.tools import TEST_TOOLS

SERVICE_KEY = "a-key-for-tests-only"
MODEL = "vendor/some-model"
"""The model that is configured and that clients may request."""
OPTIONS = ApiOptions(key=SERVICE_KEY, port=0, aliases=frozenset({"hermes-agent", MODEL}))
TEST_OVERRIDES = GatewayOverrides(tools=TEST_TOOLS, unread_seconds=0.2)


class Service:
    def __init__(self, gateway: Gateway, base_url: str, model: FakeModel) -> None:
        self.gateway = gateway
        self.base_url = base_url
        self.model = model

    @property
    def port(self) -> int:
        return int(self.base_url.rpartition(":")[2])


@asynccontextmanager
async def serving(
    home: Path,
    options: ApiOptions = OPTIONS,
    overrides: GatewayOverrides = TEST_OVERRIDES,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Service]:
    """Runs the service on the store of the home. When the block ends, the service ends as if it
    were killed."""
    async with FakeModel() as model:
        given = {
            "HERMES_CUSTOM_BASE_URL": model.base_url,
            "HERMES_MODEL": MODEL,
            "HERMES_RESTART_DRAIN_TIMEOUT": "0",
        }
        settings = load(home, {**given, **(environ or {})})
        if store_url(home):
            settings = replace(settings, store=store_settings(home))
        overrides = replace(overrides, wrap_store=partial(wrapped_store, wrap=overrides.wrap_store))
        async with open_gateway(settings, overrides) as gateway, anyio.create_task_group() as group:
            send, receive = anyio.create_memory_object_stream[str](1)
            group.start_soon(serve_http, gateway, options, send.send_nowait)
            with send, receive:
                yield Service(gateway, await receive.receive(), model)
            group.cancel_scope.cancel()
