"""Every configured account has an adapter, and a wrong configuration is refused."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.entry.messaging import (
    configured_routes,
    credential_key,
    credential_keys,
    make_adapters,
)
from hermes.settings import Settings, load
from hermes.testing.platforms import (
    ChatServer,
    FakeConfig,
    PlainAdapter,
    RichAdapter,
    fake_platform,
)
from hermes.testing.running import running, until
from hermes.testing.scripted import ScriptedModel
from hermes.types.errors import (
    ConfigError,
)
from hermes.types.platforms import WebhookRequest, WebhookResponse, WebhookRoute
from hermes.types.protocols import Accept


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


def test_the_key_of_a_credential_is_the_same_for_every_home_and_does_not_contain_it(
    tmp_path: Path,
) -> None:
    chat = fake_platform("chat", ChatServer(), PlainAdapter)
    irc = fake_platform("irc", ChatServer(), PlainAdapter)
    config = "platforms: {chat: {token: a-token, accounts: {support: other}}}\n"
    settings = configured(tmp_path, config, {"IRC_BOT_TOKEN": "a-token"})
    keys = credential_keys(settings, [chat, irc])
    assert keys["chat"] == credential_key("chat", "a-token")
    assert list(keys) == ["chat", "chat.support", "irc"]
    assert len(set(keys.values())) == 3
    assert "a-token" not in str(keys)
    off = configured(tmp_path, "platforms: {chat: {enabled: false, token: a-token}}\n")
    assert credential_keys(off, [chat]) == {}
    assert credential_keys(settings, [replace(irc, credential=lambda account, config: "")]) == {}


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
    with pytest.raises(
        ConfigError, match=r"\(chat_sdk\): install it with .*hermes-gateway\[chat\]"
    ):
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
