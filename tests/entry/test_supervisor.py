"""After every failure of its platform, an account is connected again. No other gateway uses its
credential at the same time."""

import os
import platform
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.abc
import pytest
from msgspec.structs import replace

from hermes.control.credentials import lease_name
from hermes.control.gateway import Gateway
from hermes.entry.messaging import credential_key
from hermes.entry.platforms.telegram.adapter import TelegramAdapter
from hermes.entry.platforms.telegram.manifest import TelegramConfig
from hermes.entry.supervisor import AdapterRun, SupervisorTimes, serve
from hermes.state.owners import claim_lease, register
from hermes.testing import nodes
from hermes.testing.every_store import pytest_generate_tests, store_kind
from hermes.testing.platforms import LIMIT, ChatServer, PlainAdapter, Update, to_event
from hermes.testing.rows import NOW, THEM
from hermes.testing.running import QUIET, TroubledStore, rows, running, until
from hermes.testing.scripted import ScriptedModel
from hermes.testing.stores import stores_on_postgres
from hermes.testing.telegram import BotApiServer
from hermes.types.accounts import AccountStatus
from hermes.types.errors import (
    AuthFailed,
    ClaimLost,
    Disconnected,
    RateLimited,
    StoreUnavailable,
)
from hermes.types.identity import OWNER, Principal
from hermes.types.messages import MessageEvent, Origin, Receipt, Refused
from hermes.types.platforms import Cursor, PlatformLimits
from hermes.types.protocols import Accept

__all__ = ["pytest_generate_tests", "store_kind"]

KEY = credential_key("plain", "a token")
QUICK = SupervisorTimes(reconnect=(0.01,), held=0.01, refused=(0.01,))


class Moody(PlainAdapter):
    """An adapter whose first connections fail with the given errors, one error for each connection.
    Later connections work."""

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
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        yield gateway


def status_of(gateway: Gateway, account: str) -> AccountStatus:
    return next(one for one in gateway.accounts.all() if one.account == account)


@pytest.mark.parametrize(
    "failure",
    [RateLimited("slow down", retry_after=0.01), Disconnected("cut"), RuntimeError("a fault")],
)
async def test_a_connection_that_fails_is_opened_again(
    gateway: Gateway, failure: Exception
) -> None:
    server = ChatServer()
    adapter = Moody(server, failure)
    async with anyio.create_task_group() as group:
        group.start_soon(serve, gateway, adapter)
        server.says("/status")
        await until(lambda: server.texts() == ["Idle."])
        group.cancel_scope.cancel()
    assert adapter.attempts == 2


async def test_a_bad_credential_stops_only_its_own_account(gateway: Gateway) -> None:
    adapter = Moody(ChatServer(), AuthFailed("the token is wrong"))
    with anyio.fail_after(10):
        await serve(gateway, adapter)
    assert adapter.attempts == 1
    status = status_of(gateway, "plain")
    assert (status.state, status.reason) == ("off", "the token is wrong")


async def test_an_account_waits_while_another_process_serves_it(tmp_path: Path) -> None:
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


async def test_an_account_waits_while_the_disk_is_full(tmp_path: Path) -> None:
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


async def test_an_account_that_was_lost_is_taken_again(tmp_path: Path) -> None:
    server = ChatServer()
    adapter = Moody(server, ClaimLost("chat is now served by another process"))
    async with running(tmp_path, [adapter], ScriptedModel([])) as gateway:
        server.says("/status")
        await until(lambda: server.texts() == ["Idle."])
        ((epoch,),) = await rows(gateway._store, "select epoch from leases where name like 'acc%'")
    assert (adapter.attempts, epoch) == (2, 2)


async def test_an_adapter_is_stopped_when_another_process_serves_its_account(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ChatServer()
    adapter = Moody(server)
    async with running(tmp_path, [adapter], ScriptedModel([])) as gateway:
        await until(lambda: adapter.attempts == 1)
        store = gateway._store
        # The test gives the lease to the process `THEM`. `THEM` holds no lock, so the gateway soon
        # considers `THEM` dead and takes the lease back.
        await store.run(register, THEM, "gateway", NOW)
        await store.run(claim_lease, f"account:{adapter.account}", THEM, {store.owner}, NOW)
        await until(lambda: adapter.attempts == 2, within=10)
        assert "is now used by another process" in caplog.text
        server.says("/status")
        await until(lambda: server.texts() == ["Idle."])


EVENT = to_event(Update(id=1, chat="1", user="7", text="hi"), "plain")
PRINCIPAL = Principal(name="plain", person=OWNER)


class Faulty(PlainAdapter):
    """An adapter that first reports a given event, and then works normally."""

    def __init__(self, server: ChatServer, event: MessageEvent) -> None:
        super().__init__(server)
        self._event = event
        self.receipts: list[Receipt] = []

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        self.receipts.append(await accept(self._event))
        await super().run(accept, ready, cursor)


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (replace(EVENT, origin=replace(EVENT.origin, principal=PRINCIPAL)), "origin.principal"),
        (replace(EVENT, origin=Origin()), "origin.reply_to is missing"),
        (replace(EVENT, source=replace(EVENT.source, account="irc")), "by the adapter of plain"),
    ],
)
async def test_an_event_that_a_chat_must_not_report_is_refused_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, event: MessageEvent, told: str
) -> None:
    server = ChatServer()
    adapter = Faulty(server, event)
    async with running(tmp_path, [adapter], ScriptedModel([])):
        server.says("/status")
        await until(lambda: server.texts() == ["Idle."])
    assert adapter.receipts == [Refused(reason="not a valid event of a chat")]
    assert told in caplog.text


class Hanging(PlainAdapter):
    """An adapter whose first connection receives nothing, as if its peer had vanished."""

    limits = PlatformLimits(text=LIMIT, silence=0.2)

    def __init__(self, server: ChatServer, account: str) -> None:
        super().__init__(server, account)
        self.attempts = 0

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        self.attempts += 1
        if self.attempts == 1:
            ready()
            await anyio.sleep_forever()
        await super().run(accept, ready, cursor)


async def test_a_silent_adapter_is_restarted_alone_and_catches_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, other = ChatServer(), ChatServer()
    server.poll_seconds = 0.05
    hanging, healthy = Hanging(server, "plain.hanging"), Moody(other)
    server.says("/status")
    async with running(tmp_path, [hanging, healthy], ScriptedModel([])) as gateway:
        await until(lambda: server.texts() == ["Idle."], within=20)
        await until(lambda: status_of(gateway, "plain").state == "connected")
    assert hanging.attempts >= 2
    assert healthy.attempts == 1
    assert "plain.hanging: nothing was heard from the platform for 0.2 s" in caplog.text


class Relay:
    """Passes bytes between clients and a server on this machine."""

    def __init__(self, port: int) -> None:
        self.clients = 0
        """Number of clients that have connected so far."""
        self.lost = 0
        """Number of clients that the relay cuts off, beginning with the first client. Their
        connections stay open, but the relay drops all bytes."""
        self._port = port

    async def serve(self, client: anyio.abc.SocketStream) -> None:
        self.clients += 1
        number = self.clients

        async def copy(source: anyio.abc.SocketStream, sink: anyio.abc.SocketStream) -> None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                async for data in source:
                    if number > self.lost:
                        await sink.send(data)
            group.cancel_scope.cancel()

        async with client, await anyio.connect_tcp("127.0.0.1", self._port) as server:
            async with anyio.create_task_group() as group:
                group.start_soon(copy, client, server)
                group.start_soon(copy, server, client)


@pytest.mark.sqlite
async def test_a_bot_whose_connection_is_dead_connects_again_and_answers_missed_messages(
    tmp_path: Path,
) -> None:
    class Impatient(TelegramAdapter):
        limits = replace(TelegramAdapter.limits, silence=1.0)

    async with (
        BotApiServer().running() as server,
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as group,
    ):
        server.add_chat(7)
        bot = server.add_bot("100:secret-token", "our_bot")
        relay = Relay(urlsplit(server.url).port or 0)
        group.start_soon(listener.serve, relay.serve)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        config = TelegramConfig(token=bot.token, base_url=f"http://127.0.0.1:{port}")
        async with running(tmp_path, [Impatient("telegram", config)], ScriptedModel([])):
            await until(lambda: bot.polls, within=20)
            relay.lost = relay.clients
            server.says(7, "/status")
            await until(lambda: server.texts(7) == ["Idle."], within=30)
        assert relay.clients > relay.lost
        group.cancel_scope.cancel()


class FakeClock:
    """A clock whose time the test sets. It counts how often the code under test reads it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.reads = 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now

    async def read(self) -> None:
        """Returns when the code under test has read the clock twice more. The code has then used
        the time from the first of these two reads."""
        reads = self.reads
        await until(lambda: self.reads > reads + 1)


async def test_an_adapter_with_signs_of_life_is_not_silent() -> None:
    clock, told = FakeClock(), list[str]()
    run = AdapterRun(silence=0.001, accept=0.01, clock=clock)

    async def watch() -> None:
        told.append(await run.silence())

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        for _ in range(3):
            clock.now += 0.0009
            run.note_sign_of_life()
            await clock.read()
            assert not told
        assert run.connected_for == pytest.approx(0.0018)
        clock.now += 0.0011
    assert told == ["nothing was heard from the platform for 0.001 s"]


async def test_an_adapter_may_be_silent_while_a_message_is_accepted() -> None:
    clock, told, accepted = FakeClock(), list[str](), anyio.Event()
    run = AdapterRun(silence=0.001, accept=0.01, clock=clock)

    async def accept(event: MessageEvent) -> Receipt:
        await accepted.wait()
        return Refused(reason="")

    async def watch() -> None:
        told.append(await run.silence())

    async def receive() -> None:
        await run.watched(accept)(EVENT)

    async with anyio.create_task_group() as group:
        group.start_soon(receive)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(watch)
        clock.now = 0.009
        await clock.read()
        assert not told
        clock.now = 0.011
        await until(lambda: told)
        accepted.set()
    assert told == ["a message was not accepted within 0.01 s"]


class Dying(PlainAdapter):
    """An adapter that connects and then fails at once."""

    def __init__(self) -> None:
        super().__init__(ChatServer())
        self.attempts = 0

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        self.attempts += 1
        ready()
        raise Disconnected("the server hung up")


async def test_the_pause_grows_while_connections_end_at_once(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = Dying()
    times = SupervisorTimes(reconnect=(0.001, 0.001, 3600.0), jitter=0.0)
    async with anyio.create_task_group() as group:
        group.start_soon(serve, gateway, adapter, "", times)
        await until(lambda: "reconnecting in 3600.0 s" in caplog.text)
        group.cancel_scope.cancel()
    assert adapter.attempts == 3
    status = status_of(gateway, "plain")
    assert (status.state, status.reason) == ("connecting", "the server hung up")


async def test_the_pause_is_short_again_after_a_healthy_connection(gateway: Gateway) -> None:
    adapter = Dying()
    times = SupervisorTimes(reconnect=(0.001, 3600.0), healthy=0.0)
    async with anyio.create_task_group() as group:
        group.start_soon(serve, gateway, adapter, "", times)
        await until(lambda: adapter.attempts >= 5)
        group.cancel_scope.cancel()


async def test_a_second_account_with_the_same_credential_is_refused_until_the_first_has_left(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    server = ChatServer()
    first, second = PlainAdapter(server, "plain"), PlainAdapter(server, "plain.second")
    leave = anyio.CancelScope()

    async def serve_first() -> None:
        with leave:
            await serve(gateway, first, KEY, QUICK)

    async with anyio.create_task_group() as group:
        group.start_soon(serve_first)
        await until(lambda: first.connections)
        group.start_soon(serve, gateway, second, KEY, QUICK)
        await until(lambda: len(gateway.accounts.all()) == 2)
        await until(lambda: status_of(gateway, "plain.second").state == "refused")
        refused = "the credential of plain.second is used by account plain of this gateway"
        assert refused in status_of(gateway, "plain.second").reason
        assert caplog.text.count(refused) == 1
        assert not second.connections
        leave.cancel()
        await until(lambda: second.connections)
        await until(lambda: status_of(gateway, "plain.second").state == "connected")
        group.cancel_scope.cancel()


async def test_an_account_releases_a_credential_that_the_platform_refuses(gateway: Gateway) -> None:
    server = ChatServer()
    second = PlainAdapter(server, "plain.second")
    await serve(gateway, Moody(server, AuthFailed("the token is wrong")), KEY, QUICK)
    async with anyio.create_task_group() as group:
        group.start_soon(serve, gateway, second, KEY, QUICK)
        await until(lambda: second.connections)
        group.cancel_scope.cancel()


async def test_another_node_with_the_same_credential_is_refused_and_takes_over(
    tmp_path: Path,
) -> None:
    server, model = ChatServer(), ScriptedModel([])
    first, second = PlainAdapter(server, "plain"), PlainAdapter(server, "plain.second")
    with stores_on_postgres():
        async with nodes.node(tmp_path, "two", model) as two, anyio.create_task_group() as group:
            async with (
                nodes.node(tmp_path, "one", model) as one,
                anyio.create_task_group() as leaving,
            ):
                leaving.start_soon(serve, one, first, KEY, QUICK)
                await until(lambda: first.connections)
                group.start_soon(serve, two, second, KEY, QUICK)
                await until(two.accounts.down)
                await until(lambda: status_of(two, "plain.second").state == "refused")
                told = f"is used by the gateway with pid {os.getpid()} on {platform.node()}"
                assert told in status_of(two, "plain.second").reason
                leaving.cancel_scope.cancel()
            await until(lambda: second.connections, within=20)
            group.cancel_scope.cancel()


async def test_the_same_account_on_another_node_waits_and_takes_over(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([])
    first, second = PlainAdapter(server), PlainAdapter(server)
    with stores_on_postgres():
        async with nodes.node(tmp_path, "two", model) as two, anyio.create_task_group() as group:
            async with (
                nodes.node(tmp_path, "one", model) as one,
                anyio.create_task_group() as leaving,
            ):
                leaving.start_soon(serve, one, first, KEY, QUICK)
                await until(lambda: first.connections)
                group.start_soon(serve, two, second, KEY, QUICK)
                await until(lambda: [one.state for one in two.accounts.all()] == ["waiting"])
                assert two.accounts.down() == ()
                leaving.cancel_scope.cancel()
            await until(lambda: second.connections, within=20)
            group.cancel_scope.cancel()


@pytest.mark.sqlite
async def test_an_adapter_is_stopped_when_another_node_has_taken_its_credential(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    adapter, store = Moody(ChatServer()), gateway._store
    async with anyio.create_task_group() as group:
        group.start_soon(serve, gateway, adapter, KEY, QUICK)
        await until(lambda: adapter.connections)
        # The test gives the lease to the process `THEM`. `THEM` holds no lock, so the gateway soon
        # considers `THEM` dead and takes the lease back.
        await store.run(register, THEM, "gateway", NOW)
        await store.run(claim_lease, lease_name(KEY), THEM, {store.owner}, NOW)
        await until(lambda: adapter.attempts == 2, within=10)
        group.cancel_scope.cancel()
    assert "account plain or its credential is now used by another process" in caplog.text
