"""An account stays connected after every failure of its platform."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.app.gateway import GatewayOverrides, open_gateway
from hermes.control.gateway import Gateway
from hermes.entry.messaging import configured_routes, make_adapters, serve
from hermes.settings import Settings, load
from hermes.settings.sections import AccessSettings
from hermes.state.owners import claim_lease, register
from hermes.state.paths import Home
from hermes.testing.platforms import (
    ChatServer,
    FakeConfig,
    PlainAdapter,
    RichAdapter,
    Update,
    fake_platform,
    to_event,
)
from hermes.testing.rows import NOW, THEM
from hermes.testing.running import QUIET, TroubledStore, rows, running, until
from hermes.testing.scripted import ScriptedModel
from hermes.types.errors import (
    AuthFailed,
    ClaimLost,
    ConfigError,
    Disconnected,
    RateLimited,
    StoreUnavailable,
)
from hermes.types.identity import OWNER, Principal
from hermes.types.messages import MessageEvent, Origin, Receipt, Refused
from hermes.types.platforms import Cursor, WebhookRequest, WebhookResponse, WebhookRoute
from hermes.types.protocols import Accept


class Moody(PlainAdapter):
    """An adapter whose connections fail in the given ways, one after the other, and then work."""

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
    overrides = GatewayOverrides(model=ScriptedModel([]))
    async with open_gateway(settings, overrides) as gateway:
        yield gateway


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
    with anyio.fail_after(2):
        await serve(gateway, adapter)
    assert adapter.attempts == 1


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
        # The other process holds no lock, so the gateway considers it dead and takes over again.
        await store.run(register, THEM, "gateway", NOW)
        await store.run(claim_lease, f"account:{adapter.account}", THEM, {store.owner}, NOW)
        await until(lambda: adapter.attempts == 2, within=10)
        assert "is now served by another process" in caplog.text
        server.says("/status")
        await until(lambda: server.texts() == ["Idle."])


EVENT = to_event(Update(id=1, chat="1", user="7", text="hi"), "plain")
PRINCIPAL = Principal(name="plain", person=OWNER)


class Faulty(PlainAdapter):
    """An adapter that reports one more event before the events of the server."""

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


def configured(home: Path, config: str, environ: dict[str, str] | None = None) -> Settings:
    (home / "config.yaml").write_text(config)
    return load(home, environ or {})


def test_every_configured_account_has_an_adapter(tmp_path: Path) -> None:
    server = ChatServer()
    chat, irc = (
        fake_platform("chat", server, RichAdapter),
        fake_platform("irc", server, PlainAdapter),
    )
    config = "platforms: {chat: {token: a, accounts: {support: b}}}\n"
    settings = configured(tmp_path, config, {"IRC_BOT_TOKEN": "c"})
    adapters = make_adapters(settings, [chat, irc])
    assert [(adapter.account, type(adapter)) for adapter in adapters] == [
        ("chat", RichAdapter),
        ("chat.support", RichAdapter),
        ("irc", PlainAdapter),
    ]


def test_a_platform_that_is_off_or_has_no_credentials_has_no_adapter(tmp_path: Path) -> None:
    chat = fake_platform("chat", ChatServer(), PlainAdapter)
    assert make_adapters(configured(tmp_path, ""), [chat]) == []
    config = "platforms: {chat: {enabled: false, token: a}}\n"
    assert make_adapters(configured(tmp_path, config), [chat]) == []


def test_an_enabled_platform_needs_credentials(tmp_path: Path) -> None:
    chat = fake_platform("chat", ChatServer(), PlainAdapter)
    with pytest.raises(ConfigError, match=r"platforms\.chat\.enabled is true, but no account"):
        make_adapters(configured(tmp_path, "platforms: {chat: {enabled: true}}\n"), [chat])


def test_a_wrong_setting_of_a_platform_is_reported(tmp_path: Path) -> None:
    chat = fake_platform("chat", ChatServer(), PlainAdapter)
    with pytest.raises(ConfigError, match="expected one of poll, push, found 'pull'"):
        make_adapters(configured(tmp_path, "platforms: {chat: {mode: pull}}\n"), [chat])


def test_the_error_for_a_missing_package_names_its_extra(tmp_path: Path) -> None:
    def make(account: str, config: FakeConfig) -> PlainAdapter:
        raise ModuleNotFoundError("No module named 'chat_sdk'", name="chat_sdk")

    chat = replace(fake_platform("chat", ChatServer(), PlainAdapter), make=make, extra="chat")
    settings = configured(tmp_path, "platforms: {chat: {token: a}}\n")
    with pytest.raises(ConfigError, match=r"\(chat_sdk\): install it with .*hermes\[chat\]"):
        make_adapters(settings, [chat])


@pytest.mark.parametrize("account", ["irc", "irc.support", "chat.", "chatty", ""])
def test_an_account_is_named_after_its_platform(tmp_path: Path, account: str) -> None:
    chat = replace(
        fake_platform("chat", ChatServer(), PlainAdapter),
        make=lambda name, config: PlainAdapter(ChatServer(), account),
    )
    settings = configured(tmp_path, "platforms: {chat: {token: a}}\n")
    with pytest.raises(ConfigError, match=f"'{account}' can't be the name of an account of chat"):
        make_adapters(settings, [chat])


def test_two_adapters_can_not_have_the_same_account(tmp_path: Path) -> None:
    chat = replace(
        fake_platform("chat", ChatServer(), PlainAdapter),
        make=lambda account, config: PlainAdapter(ChatServer(), "chat"),
    )
    settings = configured(tmp_path, "platforms: {chat: {token: a, accounts: {support: b}}}\n")
    with pytest.raises(ConfigError, match="two adapters have the account 'chat'"):
        make_adapters(settings, [chat])


@pytest.mark.parametrize(
    ("config", "served"),
    [
        ("platforms: {chat: {token: a}}\n", True),
        ("platforms: {chat: {enabled: false, token: a}}\n", False),
        ("platforms: {chat: {mode: push}}\n", False),
        ("", False),
    ],
)
def test_only_a_platform_with_an_account_has_webhooks(
    tmp_path: Path, config: str, served: bool
) -> None:
    async def receive(request: WebhookRequest, accept: Accept) -> WebhookResponse:
        return WebhookResponse()

    route = WebhookRoute(method="POST", path="/webhooks/chat", handler=receive)
    chat = replace(fake_platform("chat", ChatServer(), PlainAdapter), routes=lambda config: [route])
    settings = configured(tmp_path, config)
    assert configured_routes(settings, [chat]) == ([route] if served else [])


async def test_a_platform_with_a_manifest_answers_messages(tmp_path: Path) -> None:
    server = ChatServer()
    chat = fake_platform("chat", server, RichAdapter)
    settings = configured(tmp_path, "platforms: {chat: {token: a}}\n")
    server.says("/status")
    async with running(tmp_path, make_adapters(settings, [chat]), ScriptedModel([])):
        await until(lambda: server.texts() == ["Idle."])
