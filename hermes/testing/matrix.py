"""A bot on a real Matrix homeserver, in a room with a person, for the tests of the adapter."""

import itertools
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import lru_cache

from hermes.entry.platforms.matrix.adapter import MatrixAdapter
from hermes.entry.platforms.matrix.manifest import MATRIX, MatrixAccount
from hermes.testing.running import until
from hermes.testing.synapse import MatrixUser, SynapseProcess, shared_synapse
from hermes.testing.synapse_proxy import SynapseProxy, synapse_proxy
from hermes.types.errors import HermesError
from hermes.types.identity import Target

_numbers = itertools.count(1)


def new_user(server: SynapseProcess, name: str) -> MatrixUser:
    """Creates a user. A number is added to the name, so that the name is unique."""
    return server.register(f"{name}{os.getpid()}-{next(_numbers)}")


@lru_cache
def _person(server: SynapseProcess) -> MatrixUser:
    return new_user(server, "ann")


class MatrixPlatform:
    """A real homeserver, a room in which a person and a bot are alone, and the bot's adapter."""

    quality = MATRIX.quality

    def __init__(self, server: SynapseProcess, proxy: SynapseProxy) -> None:
        self.server = server
        self.proxy = proxy
        self.person, self.bot = _person(server), new_user(server, "bot")
        self.room = self.person.create_room(self.bot)
        self.bot.join(self.room)
        self.start = self.bot.token_now()
        self.credentials = MatrixAccount(homeserver=proxy.url, access_token=self.bot.token)
        self.adapter = MatrixAdapter("matrix", self.credentials)
        self.target = Target(account="matrix", chat_id=self.room)

    @property
    def echoed(self) -> int:
        return self.proxy.synced[self.bot.id]

    @property
    def connections(self) -> int:
        return self.proxy.connections

    @property
    def typed(self) -> int:
        return self.proxy.requests["typing"]

    def says(self, text: str) -> None:
        self.person.say(self.room, text)

    def presses(self, question: str, label: str) -> None:
        raise NotImplementedError("Matrix has no buttons")

    def shown(self) -> list[str]:
        sent = self.person.messages(self.room, self.bot)
        return [_rendered(content) for content in sent if "url" not in content]

    def texts(self) -> list[str]:
        """Returns the plain texts of the bot's messages, after all edits."""
        return self.person.texts(self.room, self.bot)

    async def until_texts(
        self, condition: Callable[[list[str]], object], within: float = 60.0, most: int = 0
    ) -> None:
        """Waits until the condition is true for the plain texts of the bot's messages.

        The texts are read again only after the bot has sent or edited a message. `most` is the
        maximum number of events that are read each time; 0 for no limit.
        """
        seen = -1

        def holds() -> object:
            nonlocal seen
            if seen == self.proxy.sent:
                return False
            seen = self.proxy.sent
            sent = self.person.messages(self.room, self.bot, most)
            return condition([content["body"] for content in sent])

        await until(holds, within)

    def files(self) -> list[str]:
        sent = self.person.messages(self.room, self.bot)
        return [content["filename"] for content in sent if "url" in content]

    def fail(self, error: HermesError) -> None:
        self.proxy.failures.append(error)


def _rendered(content: dict[str, str]) -> str:
    fields = {
        name: content[name] for name in ("body", "format", "formatted_body") if name in content
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


@asynccontextmanager
async def matrix_platform() -> AsyncIterator[MatrixPlatform]:
    """Yields a new bot in a new room. All tests of this process share the homeserver and the person
    in the room."""
    server = shared_synapse()
    async with synapse_proxy(server.url) as proxy:
        yield MatrixPlatform(server, proxy)
