"""An account stays connected, whatever the platform does."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.app import Parts, open_gateway
from hermes.control.gateway import Gateway
from hermes.entry.messaging import serve
from hermes.settings import Settings
from hermes.settings.sections import AccessSettings
from hermes.state.paths import Home
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, TroubledStore, rows, running, until
from hermes.testing.scripted import ScriptedModel
from hermes.types.errors import (
    AuthFailed,
    ClaimLost,
    Disconnected,
    RateLimited,
    StoreUnavailable,
)
from hermes.types.platforms import Cursor
from hermes.types.protocols import Accept


class Moody(PlainAdapter):
    """Fails in the given ways, one connection after the other, and then works."""

    def __init__(self, server: ChatServer, *failures: Exception) -> None:
        super().__init__(server)
        self._failures = list(failures)
        self.attempts = 0

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        self.attempts += 1
        if self._failures:
            raise self._failures.pop(0)
        await super().run(accept, ready, cursor)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    settings = Settings(
        home=Home(root=tmp_path), workspace=tmp_path, access=AccessSettings(allow_all=True)
    )
    parts = Parts(adapters=[PlainAdapter(ChatServer())], model=ScriptedModel([]))
    async with open_gateway(settings, parts) as gateway:
        yield gateway


@pytest.mark.parametrize(
    "failure",
    [RateLimited("slow down", retry_after=0.01), Disconnected("cut"), RuntimeError("a fault")],
)
async def test_a_connection_that_fails_is_made_again(gateway: Gateway, failure: Exception) -> None:
    server = ChatServer()
    adapter = Moody(server, failure)
    async with anyio.create_task_group() as group:
        group.start_soon(serve, gateway, adapter)
        server.says("/status")
        await until(lambda: server.texts() == ["Idle."])
        group.cancel_scope.cancel()
    assert adapter.attempts == 2


async def test_a_bad_credential_ends_the_account_alone(gateway: Gateway) -> None:
    adapter = Moody(ChatServer(), AuthFailed("the token is wrong"))
    with anyio.fail_after(2):
        await serve(gateway, adapter)
    assert adapter.attempts == 1


async def test_an_account_waits_for_the_process_that_serves_it(tmp_path: Path) -> None:
    server, leave = ChatServer(), anyio.Event()
    waiting = Moody(server)

    async def first() -> None:
        async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])):
            await leave.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        server.says("/status")
        await until(server.texts)
        async with running(tmp_path, [waiting], ScriptedModel([])):
            server.says("/status")
            await until(lambda: len(server.texts()) == 2)
            assert waiting.attempts == 0
            leave.set()
            server.says("/stop")
            await until(lambda: waiting.attempts == 1)
            await until(lambda: server.texts() == ["Idle.", "Idle.", "Nothing is running."])


async def test_an_account_waits_for_the_disk(tmp_path: Path) -> None:
    server, full = ChatServer(), [True]

    async def before(name: str) -> None:
        if name == "claim_lease" and full:
            full.clear()
            raise StoreUnavailable("the disk is full")

    troubled = replace(QUIET, wrap_store=lambda store: TroubledStore(store, before))
    server.says("/status")
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([]), troubled):
        await until(lambda: server.texts() == ["Idle."])
    assert not full


async def test_an_account_that_was_lost_is_held_again(tmp_path: Path) -> None:
    server = ChatServer()
    adapter = Moody(server, ClaimLost("chat is served by another process by now"))
    async with running(tmp_path, [adapter], ScriptedModel([])) as gateway:
        server.says("/status")
        await until(lambda: server.texts() == ["Idle."])
        ((epoch,),) = await rows(gateway.store, "select epoch from leases where name like 'acc%'")
    assert (adapter.attempts, epoch) == (2, 2)
