"""Private chats of a newcomer with the agent: on the fake Bot API, and on a Matrix homeserver."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from hermes.control.targets import TargetPlatform
from hermes.entry.platforms.matrix.adapter import MatrixAdapter
from hermes.entry.platforms.matrix.manifest import MATRIX
from hermes.entry.platforms.telegram.adapter import TelegramAdapter
from hermes.entry.platforms.telegram.manifest import TELEGRAM, TelegramConfig
from hermes.testing.matrix import MatrixPlatform, matrix_platform, new_user
from hermes.testing.running import until
from hermes.testing.telegram import BotApiServer
from hermes.testing.telegram_records import ApiObject
from hermes.types.platforms import PlatformAdapter
from hermes.types.value import Value

NEWCOMER_WAIT_SECONDS = 60.0
"""Maximum number of seconds for which the newcomer waits for the agent."""
BOT_TOKEN = "100:secret-token"  # noqa: S105
NEWCOMER = 7
"""The newcomer's user id on Telegram."""


class AgentMessage(Value):
    """A message of the agent, as the chat shows it."""

    text: str
    """The text after all edits."""
    versions: tuple[str, ...]
    """All texts that the message has had, oldest first."""
    file: str | None = None
    """The name of the attached file."""


ChatCondition = Callable[[list[AgentMessage]], object]


class EveningChat(Protocol):
    """The chat of one newcomer. Its methods are the actions of the newcomer."""

    account: str
    target: TargetPlatform

    @property
    def chat(self) -> str:
        """The id of the chat on its platform."""

    @property
    def user(self) -> str:
        """The id of the newcomer on the platform."""

    def adapter(self) -> PlatformAdapter:
        """Returns a new adapter of the bot's account, for a gateway that starts."""

    async def opens(self) -> None:
        """Opens the chat. Must be called after the gateway has connected to the platform."""

    def says(self, text: str) -> str:
        """Sends a message, and returns the key under which the gateway stores it."""

    def edits(self, key: str, text: str) -> None:
        """Edits the message with this key."""

    def shown(self) -> list[AgentMessage]:
        """Returns the messages of the agent, oldest first."""

    async def until(self, condition: ChatCondition) -> None:
        """Waits until the condition is true for the messages of the agent."""


class TelegramEvening:
    """A private chat on the fake Bot API."""

    account = "telegram"
    target = TargetPlatform(name="telegram", accounts=("telegram",), refs=TELEGRAM.refs)
    chat = user = str(NEWCOMER)

    def __init__(self, server: BotApiServer) -> None:
        self._server = server
        self._said: dict[str, ApiObject] = {}
        server.add_bot(BOT_TOKEN, "our_bot")
        server.add_chat(NEWCOMER)

    def adapter(self) -> PlatformAdapter:
        config = TelegramConfig(token=BOT_TOKEN, base_url=self._server.url)
        return TelegramAdapter(self.account, config)

    async def opens(self) -> None:
        """Does nothing, because a private chat on Telegram needs no preparation."""

    def says(self, text: str) -> str:
        message = self._server.says(NEWCOMER, text, NEWCOMER)
        key = f"{self.account}:{self.chat}:{message['message_id']}"
        self._said[key] = message
        return key

    def edits(self, key: str, text: str) -> None:
        self._server.edits(self._said[key], text)

    def shown(self) -> list[AgentMessage]:
        return [
            AgentMessage(text=one.shown.text, versions=one.versions, file=one.file)
            for one in self._server.messages.values()
        ]

    async def until(self, condition: ChatCondition) -> None:
        await until(lambda: condition(self.shown()), NEWCOMER_WAIT_SECONDS)


class MatrixEvening:
    """The chat of a newcomer on Matrix: a direct room on a real homeserver."""

    account = "matrix"
    target = TargetPlatform(name="matrix", accounts=("matrix",), refs=MATRIX.refs)

    def __init__(self, platform: MatrixPlatform) -> None:
        self._platform = platform
        self._person = new_user(platform.server, "ann")
        self.chat = ""

    @property
    def user(self) -> str:
        return self._person.id

    def adapter(self) -> PlatformAdapter:
        return MatrixAdapter(self.account, self._platform.credentials)

    async def opens(self) -> None:
        """Invites the bot to a direct room, after the adapter has connected."""
        await until(lambda: self._platform.proxy.requests["sync"] > 1, NEWCOMER_WAIT_SECONDS)
        self.chat = self._person.create_room(self._platform.bot, is_direct=True)

    def says(self, text: str) -> str:
        return f"{self.account}:{self._person.say(self.chat, text)}"

    def edits(self, key: str, text: str) -> None:
        edited = key.removeprefix(f"{self.account}:")
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": edited}
        fields = {"m.new_content": new, "m.relates_to": relation}
        self._person.say(self.chat, f"* {text}", **fields)

    def shown(self) -> list[AgentMessage]:
        found: dict[str, AgentMessage] = {}
        for event in self.events():
            content = event["content"]
            if event["type"] != "m.room.message" or event["sender"] != self._platform.bot.id:
                continue
            relation, versions = content.get("m.relates_to", {}), tuple[str, ...]()
            id = event["event_id"]
            if relation.get("rel_type") == "m.replace":
                id, content = relation["event_id"], content["m.new_content"]
                versions = found[id].versions
            text: str = content["body"]
            found[id] = AgentMessage(
                text=text, versions=(*versions, text), file=content.get("filename")
            )
        return list(found.values())

    def events(self) -> list[dict[str, Any]]:
        """Returns all events of the room, oldest first."""
        return self._person.events(self.chat)

    async def until(self, condition: ChatCondition) -> None:
        seen = -1

        def holds() -> object:
            nonlocal seen
            # The room is read again only after the bot has sent or edited a message.
            if seen == self._platform.proxy.sent:
                return False
            seen = self._platform.proxy.sent
            return condition(self.shown())

        await until(holds, NEWCOMER_WAIT_SECONDS)


@asynccontextmanager
async def telegram_evening() -> AsyncIterator[TelegramEvening]:
    """Runs a fake Bot API until the block ends."""
    async with BotApiServer().running() as server:
        yield TelegramEvening(server)


@asynccontextmanager
async def matrix_evening() -> AsyncIterator[MatrixEvening]:
    """Creates a newcomer and a bot on the homeserver that all tests of this process share."""
    async with matrix_platform() as platform:
        yield MatrixEvening(platform)
