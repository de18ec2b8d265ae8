"""The credentials of each chat account are checked, without disturbing a running gateway."""

from hermes.entry.platforms.telegram.adapter import TelegramAdapter
from hermes.entry.platforms.telegram.manifest import TelegramConfig
from hermes.entry.platforms.verification import account_jobs
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.telegram import BotApiServer
from hermes.types.checks import Check
from hermes.types.platforms import PlatformAdapter

TOKEN = "100:secret-token"


async def checked(adapter: PlatformAdapter) -> Check:
    (job,) = account_jobs([adapter])
    (found,) = await job.run()
    assert found.name == job.name == adapter.account
    assert job.seconds == 5.0
    return found


def telegram(url: str, token: str = TOKEN) -> TelegramAdapter:
    return TelegramAdapter("telegram", TelegramConfig(token=token, base_url=url))


async def test_a_token_that_the_platform_accepts_is_ok() -> None:
    async with BotApiServer().running() as server:
        server.add_bot(TOKEN, "our_bot")
        found = await checked(telegram(server.url))
        # No other method is called, so that a running gateway is not disturbed.
        assert [call.method for call in server.calls] == ["getMe"]
    assert (found.level, found.text) == ("ok", "@our_bot")


async def test_a_refused_token_is_an_error_that_does_not_show_the_token() -> None:
    async with BotApiServer().running() as server:
        found = await checked(telegram(server.url))
    assert (found.level, "does not know the bot's token" in found.text) == ("error", True)
    assert "restart the gateway" in found.hint
    assert "secret-token" not in found.text + found.hint


async def test_a_platform_that_can_not_be_reached_is_an_error() -> None:
    found = await checked(telegram("http://127.0.0.1:9"))
    assert (found.level, "getMe failed" in found.text) == ("error", True)
    assert "network" in found.hint


async def test_a_platform_without_a_check_is_ok() -> None:
    found = await checked(PlainAdapter(ChatServer()))
    assert (found.level, "can't be checked" in found.text) == ("ok", True)
