"""The built-in commands: the whole table, and the general commands."""

from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.app.builtins import Builtins
from hermes.control.builtin_commands import whoami
from hermes.control.commands import CommandTable
from hermes.settings.sections import AccessSettings, CompressionSettings
from hermes.state import chats
from hermes.testing.command_chats import CommandChat, command_chat, command_context, result_of
from hermes.testing.rows import said
from hermes.testing.running import QUIET, until
from hermes.testing.scripted import hangs, says
from hermes.types.commands import (
    COMMAND_SURFACES,
    CommandContext,
    CommandReply,
    CommandSurface,
    OpenTurn,
)
from hermes.types.identity import OWNER, ChatRef, Principal, TurnId
from hermes.types.messages import Accepted, Origin, Said
from hermes.types.people import Role
from hermes.types.store import Work

RUNNING = OpenTurn(id=TurnId("t"), state="running", steps=1, started_at=0.0)


def runs(command: CommandContext) -> Work[CommandReply]:
    yield from ()
    return CommandReply(reply="it runs")


COMMANDS = Builtins().register_commands()
TABLE = CommandTable([replace(one, action=runs) for one in COMMANDS])
"""The table of all commands, with an action that only says that it runs."""
ROLES: dict[str, Role] = {"sethome": Role.ADMIN, "pair": Role.ADMIN}
"""The role that a person must have to use a command. Every user may use the other commands."""
SURFACES: dict[str, tuple[CommandSurface, ...]] = {
    "sethome": ("chat",),
    "background": ("chat",),
    "exit": ("terminal",),
}
"""The commands that can be used in some places only, each with these places."""
NOT_WHILE_RUNNING = {"branch", "resume", "compress", "handoff", "retry", "undo"}


@pytest.mark.parametrize("name", TABLE.commands)
def test_every_command_runs_or_is_refused_with_a_sentence(name: str) -> None:
    found = TABLE.find(replace(said("k"), body=Said(text=f"/{name}")))
    assert found is not None
    action, _ = found
    for role, surface, turn in product(Role, COMMAND_SURFACES, (None, RUNNING)):
        done = result_of(action(command_context(role=role, surface=surface, turn=turn)))
        allowed = (
            role >= ROLES.get(name, Role.USER)
            and surface in SURFACES.get(name, COMMAND_SURFACES)
            and (turn is None or name not in NOT_WHILE_RUNNING)
        )
        case = f"{role.name} in {surface}, {turn}: {done.reply}"
        assert done.failed is not allowed, case
        if allowed:
            assert done.reply == "it runs" or name == "help", case
        else:
            assert f"/{name}" in done.reply, case
            assert done.reply.endswith("."), case


def test_the_table_contains_all_documented_commands() -> None:
    assert {
        *("new", "title", "branch", "resume", "sessions", "compress", "model", "reasoning"),
        *("personality", "context", "usage", "status", "whoami", "sethome", "stop", "help"),
    } <= set(TABLE.commands)


async def test_a_setting_turns_the_command_compress_off(tmp_path: Path) -> None:
    off = replace(QUIET, compression=CompressionSettings(enabled=False))
    async with command_chat(tmp_path, conditions=off) as chat:
        assert await chat.asks("/compress") == (
            "/compress is turned off by the setting compression.enabled."
        )


async def test_every_command_is_answered_in_an_empty_session(tmp_path: Path) -> None:
    async with command_chat(tmp_path) as chat:
        for name in TABLE.commands:
            assert (await chat.asks(f"/{name}")).strip()


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[CommandChat]:
    async with command_chat(tmp_path, [hangs(), says("next"), says("after")]) as opened:
        yield opened


async def test_the_commands_status_and_stop_work_while_the_model_does_not_answer(
    chat: CommandChat,
) -> None:
    chat.server.says("think")
    await until(lambda: chat.model.requests)
    assert "Working for" in await chat.asks("/status")
    assert (await chat.asks("more")).startswith("Queued (1)")
    assert "1 queued" in await chat.asks("/status")
    before = len(chat.server.texts())
    chat.server.says("/stop")
    await until(lambda: len(chat.server.texts()) == before + 3)
    shown = chat.server.texts()[before:]
    # The reply to the command may come before or after the end of the turn.
    assert sorted(shown) == ["(stopped: by you)", "Stopped. 1 queued message follows.", "next"]
    assert shown.index("(stopped: by you)") < shown.index("next")
    assert await chat.asks("/status") == "Idle."


async def test_the_command_sethome_sets_the_home_chat_and_works_only_in_chats(
    tmp_path: Path,
) -> None:
    admin = replace(QUIET, access=AccessSettings(admins=("plain:7",)))
    async with command_chat(tmp_path, conditions=admin) as chat:
        reply = await chat.asks("/sethome")
        assert reply.startswith("This is now the home chat of plain")
        store = chat.gateway._store
        assert await store.run(chats.homes) == {"plain": ChatRef(chat_id="1")}
        principal = Principal(name="cli", person=OWNER)
        event = replace(said("x"), body=Said(text="/set-home"), origin=Origin(principal=principal))
        receipt = await chat.gateway.accept(event)
    assert isinstance(receipt, Accepted)
    assert receipt.failed
    assert receipt.reply == "/sethome works only in chats."


async def test_the_reply_to_stop_says_if_nothing_runs(chat: CommandChat) -> None:
    assert await chat.asks("/stop") == "Nothing is running."


def test_whoami_shows_the_ids_of_the_person_and_the_session() -> None:
    done = result_of(whoami(command_context(role=Role.ADMIN)))
    assert done.reply.splitlines() == [
        "person: telegram:42",
        "role: admin",
        "user: 42 on telegram",
        "session: agent:main:telegram:private:7",
    ]
