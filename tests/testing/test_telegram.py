"""The fake of the Bot API refuses the same calls as Telegram, with the same descriptions."""

from collections.abc import AsyncIterator, Mapping

import aiohttp
import anyio
import pytest

from hermes.testing.running import until
from hermes.testing.telegram import BotApiServer
from hermes.testing.telegram_html import BadEntities, FormattedText, parse_html
from hermes.testing.telegram_records import ApiObject, ScriptedFailure

TOKEN = "100:a"
GROUP = -1001


class Caller:
    """Calls the methods of the server as one bot."""

    def __init__(self, server: BotApiServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.fake = server.add_bot(TOKEN, "our_bot")
        self.token = TOKEN
        self._session = session

    async def call(self, method: str, **parameters: object) -> ApiObject:
        url = f"{self.server.url}/bot{self.token}/{method}"
        async with self._session.post(url, json=parameters) as response:
            found = await response.json()
        assert isinstance(found, dict)
        assert found["ok"] is (response.status == 200)
        return found

    async def refusal(self, method: str, **parameters: object) -> tuple[object, object]:
        found = await self.call(method, **parameters)
        return found.get("error_code"), found.get("description")


@pytest.fixture
async def bot() -> AsyncIterator[Caller]:
    async with BotApiServer().running() as server, aiohttp.ClientSession() as session:
        server.add_chat(7)
        server.add_chat(GROUP, "supergroup", title="Team", topics=(4,))
        yield Caller(server, session)


HTML = {"chat_id": 7, "parse_mode": "HTML"}


@pytest.mark.parametrize(
    ("method", "parameters", "description"),
    [
        ("sendMessage", {"chat_id": 8, "text": "a"}, "Bad Request: chat not found"),
        ("sendMessage", {**HTML, "text": ""}, "Bad Request: message text is empty"),
        ("sendMessage", {**HTML, "text": "<b> </b>"}, "Bad Request: message text is empty"),
        ("sendMessage", {**HTML, "text": "x" * 4097}, "Bad Request: message is too long"),
        ("sendMessage", {**HTML, "text": "😀" * 2049}, "Bad Request: message is too long"),
        (
            "sendMessage",
            {**HTML, "text": "a</b>"},
            "Bad Request: can't parse entities: Unexpected end tag at byte offset 1",
        ),
        (
            "sendMessage",
            {"chat_id": GROUP, "text": "a", "message_thread_id": 5},
            "Bad Request: message thread not found",
        ),
        (
            "sendMessage",
            {
                **HTML,
                "text": "a",
                "reply_markup": {
                    "inline_keyboard": [[{"text": "b", "callback_data": "x" * 65}]],
                },
            },
            "Bad Request: BUTTON_DATA_INVALID",
        ),
        (
            "editMessageText",
            {**HTML, "text": "a", "message_id": 99},
            "Bad Request: message to edit not found",
        ),
        (
            "answerCallbackQuery",
            {"callback_query_id": "q"},
            "Bad Request: query is too old and response timeout expired or query ID is invalid",
        ),
        (
            "getFile",
            {"file_id": "f"},
            "Bad Request: wrong file_id or the file is temporarily unavailable",
        ),
        (
            "setWebhook",
            {"url": "http://bot.example"},
            "Bad Request: bad webhook: An HTTPS URL must be provided for webhook",
        ),
    ],
)
async def test_a_bad_call_is_refused(
    bot: Caller, method: str, parameters: Mapping[str, object], description: str
) -> None:
    assert await bot.refusal(method, **parameters) == (400, description)
    assert bot.server.messages == {}


@pytest.mark.parametrize(
    "parameters",
    [
        {"chat_id": 7, "text": "a", "parse_mode": "Markdown"},
        {"chat_id": 7, "text": 5},
        {"chat_id": 7, "text": "a", "unknown": 1},
        {"text": "a"},
    ],
)
async def test_wrong_parameters_are_refused(bot: Caller, parameters: Mapping[str, object]) -> None:
    status, _ = await bot.refusal("sendMessage", **parameters)
    assert status == 400


async def test_a_wrong_token_and_an_unknown_method_are_refused(bot: Caller) -> None:
    assert await bot.refusal("getYou") == (404, "Not Found")
    bot.token = "100:b"
    assert await bot.refusal("getMe") == (401, "Unauthorized")


async def test_an_edit_must_change_the_message(bot: Caller) -> None:
    await bot.call("sendMessage", **HTML, text="a <b>b</b>")
    ((_, number),) = bot.server.messages
    same = await bot.refusal("editMessageText", **HTML, message_id=number, text="a <b>b</b>")
    assert same[0] == 400
    assert str(same[1]).startswith("Bad Request: message is not modified")
    await bot.call("editMessageText", **HTML, message_id=number, text="a b")
    (message,) = bot.server.messages.values()
    assert message.versions == ("a b", "a b")


async def test_calls_inside_a_penalty_window_are_refused_and_noted(bot: Caller) -> None:
    bot.server.penalize(7, 60)
    found = await bot.call("sendMessage", chat_id=7, text="a")
    assert found["error_code"] == 429
    assert found["parameters"] == {"retry_after": 60}
    assert [call.method for call in bot.server.impatient] == ["sendMessage"]
    assert (await bot.call("sendMessage", chat_id=GROUP, text="a"))["ok"]


async def test_a_scripted_failure_loses_the_call_or_only_its_answer(bot: Caller) -> None:
    bot.server.failures = [ScriptedFailure(), ScriptedFailure(done=True)]
    for count in (0, 1):
        with pytest.raises(aiohttp.ClientError):
            await bot.call("sendMessage", chat_id=7, text="a")
        assert len(bot.server.messages) == count


# --- updates ---------------------------------------------------------------------------------


def numbers(found: ApiObject) -> list[int]:
    updates = found["result"]
    assert isinstance(updates, list)
    return [update["update_id"] for update in updates]


async def test_updates_are_forgotten_when_a_later_one_is_requested(bot: Caller) -> None:
    for text in ("a", "b", "c"):
        bot.server.says(7, text)
    wanted = {"allowed_updates": ["message"]}
    first = numbers(await bot.call("getUpdates", **wanted))
    assert numbers(await bot.call("getUpdates", **wanted)) == first
    assert numbers(await bot.call("getUpdates", offset=first[1], **wanted)) == first[1:]
    assert numbers(await bot.call("getUpdates", **wanted)) == first[1:]


async def test_an_offset_far_in_the_future_is_ignored(bot: Caller) -> None:
    bot.server.says(7, "a")
    found = await bot.call("getUpdates", offset=10**9, allowed_updates=["message"])
    assert len(numbers(found)) == 1


async def test_a_poll_waits_for_an_update(bot: Caller) -> None:
    found: list[ApiObject] = []

    async def poll() -> None:
        found.append(await bot.call("getUpdates", timeout=30, allowed_updates=["message"]))

    async with anyio.create_task_group() as group:
        group.start_soon(poll)
        await until(lambda: bot.server.connections)
        assert not found
        bot.server.says(7, "a")
    assert len(numbers(found[0])) == 1


async def test_the_older_of_two_pollers_gets_a_conflict(bot: Caller) -> None:
    refused: list[tuple[object, object]] = []

    async def poll(timeout: int) -> None:
        refused.append(await bot.refusal("getUpdates", timeout=timeout))

    async with anyio.create_task_group() as group:
        group.start_soon(poll, 30)
        await until(lambda: bot.fake.polls)
        assert (await bot.call("getUpdates"))["ok"]
    ((status, description),) = refused
    assert status == 409
    assert str(description).startswith("Conflict: terminated by other getUpdates request")


async def test_polls_are_refused_while_a_webhook_is_set(bot: Caller) -> None:
    await bot.call("setWebhook", url="https://bot.example", secret_token="s")
    assert (await bot.refusal("getUpdates"))[0] == 409
    await bot.call("deleteWebhook")
    assert (await bot.call("getUpdates"))["ok"]


# --- markup ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("<p>a</p>", 'Unsupported start tag "p" at byte offset 0'),
        ("é <<", 'Unsupported start tag "" at byte offset 3'),
        ("a</b>", "Unexpected end tag at byte offset 1"),
        ("<b>a</i>", 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"'),
        ("<b>a", 'Can\'t find end tag corresponding to start tag "b"'),
        ('<b class="x">a</b>', 'Unexpected attribute of tag "b" at byte offset 0'),
        ("<pre><b>a</b></pre>", "Entity in code at byte offset 5"),
        ("<blockquote><blockquote>a</blockquote></blockquote>", "Nested blockquote"),
    ],
)
def test_bad_html_is_refused(source: str, problem: str) -> None:
    with pytest.raises(BadEntities) as caught:
        parse_html(source)
    assert str(caught.value).startswith(problem)


def test_good_html_is_parsed() -> None:
    source = '<a href="x">a&amp;b</a> <pre><code class="language-py">&lt;</code></pre> &copy; &'
    assert parse_html(source) == FormattedText(
        text="a&b < &copy; &",
        entities=(
            ("a", 'href="x"', 0, 3),
            ("code", 'class="language-py"', 4, 5),
            ("pre", "", 4, 5),
        ),
    )
