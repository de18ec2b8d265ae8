"""The bots of the fake Bot API, with the updates that they have not acknowledged yet."""

import re

import anyio

from hermes.testing.telegram_parameters import (
    AnswerCallbackQuery,
    MenuCommand,
    NoParameters,
    SetMyCommands,
    SetWebhook,
)
from hermes.testing.telegram_records import ApiObject, ApiRefusal, BotToken

_MENTION = re.compile(r"@\w+")


class FakeBot:
    """One bot: its user, and the updates that it has not acknowledged yet."""

    def __init__(self, token: BotToken, username: str) -> None:
        self.token = token
        self.user: ApiObject = {
            "id": int(token.partition(":")[0]),
            "is_bot": True,
            "first_name": username,
            "username": username,
        }
        self.pending: list[ApiObject] = []
        self.received: list[ApiObject] = []
        """The updates that messages and button presses of people have caused. An update that is
        delivered again is not added again."""
        self.webhook: SetWebhook | None = None
        self.menu: tuple[MenuCommand, ...] = ()
        """The commands in the bot's menu."""
        self.queries: set[str] = set()
        """The button presses that are not answered yet."""
        self.alerts: list[str] = []
        """The texts of the answers to button presses, without empty texts."""
        self.poller = anyio.CancelScope()
        self.polls = 0
        """Number of polls that wait for updates."""
        self.changed = anyio.Event()

    def set_webhook(self, wanted: SetWebhook) -> bool:
        if not wanted.url.startswith("https://"):
            raise ApiRefusal(
                400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook"
            )
        self.webhook = wanted
        return True

    def delete_webhook(self, wanted: NoParameters) -> bool:
        self.webhook = None
        return True

    def set_menu(self, wanted: SetMyCommands) -> bool:
        self.menu = wanted.commands
        return True

    def wake(self) -> None:
        """Makes a waiting poll check for pending updates."""
        self.changed.set()
        self.changed = anyio.Event()


def answer_query(bot: FakeBot, wanted: AnswerCallbackQuery) -> bool:
    """Answers a button press. Raises ApiRefusal if the press is unknown or was answered before."""
    if wanted.callback_query_id not in bot.queries:
        raise ApiRefusal(
            400,
            "Bad Request: query is too old and response timeout expired or query ID is invalid",
        )
    bot.queries.remove(wanted.callback_query_id)
    bot.alerts += [wanted.text] if wanted.text else []
    return True


def update_number(update: ApiObject) -> int:
    number = update["update_id"]
    assert isinstance(number, int)
    return number


def update_sender(update: ApiObject) -> ApiObject:
    """Returns the user who sent the message of the update; empty if there is no message."""
    message = update.get("message", {})
    assert isinstance(message, dict)
    sender: ApiObject = message.get("from", {})
    return sender


def mentions(text: str) -> list[ApiObject]:
    """Returns an entity for each `@name` in the text; none if the text is not ASCII."""
    return [
        {"type": "mention", "offset": found.start(), "length": len(found[0])}
        for found in _MENTION.finditer(text)
        if text.isascii()
    ]
