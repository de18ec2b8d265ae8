"""Runs slash commands in tests: in a chat with a gateway, or without a gateway."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from hermes.control.gateway import Gateway
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.rows import CHAT, NOW, SOURCE, session
from hermes.testing.running import QUIET, Conditions, running, until
from hermes.testing.scripted import Answer, ScriptedModel
from hermes.types.agents import own_model_only
from hermes.types.commands import CommandContext, CommandSurface, OpenTurn
from hermes.types.identity import AgentId, PersonId
from hermes.types.people import Role
from hermes.types.profile import AgentProfile
from hermes.types.store import Work

T = TypeVar("T")


class CommandChat:
    """A private chat with a gateway whose model is scripted."""

    def __init__(self, server: ChatServer, model: ScriptedModel, gateway: Gateway) -> None:
        self.server = server
        self.model = model
        self.gateway = gateway

    async def asks(self, text: str) -> str:
        """Sends the text, and returns the next message that the chat shows."""
        before = len(self.server.texts())
        self.server.says(text)
        await until(lambda: len(self.server.texts()) > before)
        return self.server.texts()[before]


@asynccontextmanager
async def command_chat(
    home: Path,
    answers: Iterable[Answer] = (),
    conditions: Conditions = QUIET,
    server: ChatServer | None = None,
) -> AsyncIterator[CommandChat]:
    """Runs a gateway with one chat until the block ends. The gateway's model gives the answers in
    order.

    A test that restarts the gateway passes the `server` of the earlier chat.
    """
    server, model = server or ChatServer(), ScriptedModel(answers)
    async with running(home, [PlainAdapter(server)], model, conditions) as gateway:
        yield CommandChat(server, model, gateway)


def command_context(
    argument: str = "",
    *,
    role: Role = Role.OWNER,
    surface: CommandSurface = "chat",
    turn: OpenTurn | None = None,
) -> CommandContext:
    """Returns the context of a command in the session of `rows.SOURCE`."""
    return CommandContext(
        session=session(),
        person=PersonId("telegram:42"),
        argument=argument,
        turn=turn,
        now=NOW,
        source=SOURCE,
        surface=surface,
        chat=CHAT if surface == "chat" else None,
        profile=AgentProfile(id=AgentId("main")),
        find_model=own_model_only,
        role=role,
    )


def result_of(work: Work[T]) -> T:
    """Returns the result of a transaction that uses no store."""
    try:
        next(work)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("the transaction uses the store")
