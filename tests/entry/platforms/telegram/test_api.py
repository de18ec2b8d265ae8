"""Errors of the Bot API become our errors, and none of them contains the token."""

import pytest

from hermes.entry.platforms.telegram.api import BotApi, error_for
from hermes.entry.platforms.telegram.schema import DOWNLOAD_BYTES, Response, User
from hermes.testing.telegram import BotApiServer
from hermes.testing.telegram_records import ScriptedFailure
from hermes.types.errors import (
    AuthFailed,
    Disconnected,
    FormatRefused,
    HermesError,
    RateLimited,
    Rejected,
    TargetGone,
)

TOKEN = "100:secret-token"


@pytest.mark.parametrize(
    ("status", "description", "kind"),
    [
        (400, "Bad Request: chat not found", TargetGone),
        (403, "Forbidden: bot was blocked by the user", TargetGone),
        (400, "Bad Request: message text is empty", Rejected),
        (400, "Bad Request: can't parse entities: Unsupported start tag", FormatRefused),
        (413, "Request Entity Too Large", Rejected),
        (401, "Unauthorized", AuthFailed),
        (404, "Not Found", AuthFailed),
        (409, "Conflict: terminated by other getUpdates request", Disconnected),
        (429, "Too Many Requests: retry after 7", RateLimited),
        (500, "Internal Server Error", Disconnected),
        (502, "Bad Gateway", Disconnected),
    ],
)
def test_each_status_has_its_error(status: int, description: str, kind: type[HermesError]) -> None:
    error = error_for(status, Response(ok=False, description=description))
    assert type(error) is kind
    assert description in str(error)


def test_a_rate_limit_names_its_pause() -> None:
    assert error_for(429, Response(ok=False, parameters={"retry_after": 7})).retry_after == 7
    assert error_for(429, Response(ok=False)).retry_after is None


def test_a_group_that_was_upgraded_names_its_new_id() -> None:
    moved = Response(ok=False, parameters={"migrate_to_chat_id": -1005})
    assert "-1005" in str(error_for(400, moved))


async def test_no_error_contains_the_token() -> None:
    async with BotApiServer().running() as server:
        server.add_bot(TOKEN, "our_bot")
        url = server.url
        api = BotApi(url, TOKEN)
        server.failures = [ScriptedFailure(), ScriptedFailure(status=500)]
        texts = []
        for _ in range(2):
            with pytest.raises(Disconnected) as caught:
                await api.call("getMe", User, {})
            texts.append(caught)
        with pytest.raises(AuthFailed) as unknown:
            await BotApi(url, f"{TOKEN}-wrong").call("getMe", User, {})
    with pytest.raises(Disconnected) as closed:
        await api.call("getMe", User, {})
    for found in (*texts, unknown, closed):
        assert "secret-token" not in f"{found.value} {found.value.__cause__!r}"


async def test_an_answer_that_can_not_be_decoded_counts_as_a_lost_connection() -> None:
    async with BotApiServer().running() as server:
        with pytest.raises(AuthFailed):
            await BotApi(f"{server.url}/nothing/here", TOKEN).call("getMe", User, {})
        server.add_bot(TOKEN, "our_bot")
        with pytest.raises(Disconnected, match="unexpected result"):
            await BotApi(server.url, TOKEN).call("getMe", int, {})


async def test_the_session_is_shared_by_nested_uses_and_closed_after_the_last() -> None:
    api, closed = BotApi("http://127.0.0.1:9", TOKEN), []
    async with api.open() as outer:
        async with api.open() as inner:
            assert inner is outer
        closed.append(outer.closed)
    closed.append(outer.closed)
    assert closed == [False, True]
    async with api.open() as again:
        assert again is not outer


async def test_a_file_is_downloaded_up_to_the_limit() -> None:
    async with BotApiServer().running() as server:
        server.add_bot(TOKEN, "our_bot")
        server.files = {"small": b"hello", "large": b"x" * (DOWNLOAD_BYTES + 1)}
        api = BotApi(server.url, TOKEN)
        assert await api.download("small") == b"hello"
        with pytest.raises(Rejected, match="too big"):
            await api.download("large")
        with pytest.raises(Rejected, match="wrong file_id"):
            await api.download("unknown")
