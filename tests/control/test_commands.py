"""Commands are found by name, and run only if their conditions are met."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.builtin_commands import builtin_commands, stop
from hermes.control.commands import CommandTable, surface_of
from hermes.testing.command_chats import CommandChat, command_chat, command_context, result_of
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.rows import said
from hermes.testing.running import running, until
from hermes.testing.scripted import ScriptedModel, hangs, says
from hermes.types.commands import CommandContext, CommandReply, SlashCommand
from hermes.types.errors import ConfigError
from hermes.types.identity import OWNER, Principal
from hermes.types.messages import Accepted, Origin, Refused, Said
from hermes.types.people import Role
from hermes.types.store import Work


@pytest.fixture
async def chat(tmp_path: Path) -> AsyncIterator[CommandChat]:
    async with command_chat(tmp_path, [hangs(), says("next"), says("after")]) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "bot", "ours"),
    [
        ("/stop@our_bot", "our_bot", True),
        ("/stop@Our_Bot now", "our_bot", True),
        ("/stop@other_bot", "our_bot", False),
        ("/stop@other_bot", "", False),
        ("/stop", "our_bot", True),
        ("write to a@other_bot", "our_bot", True),
    ],
)
async def test_a_command_for_another_bot_is_ignored(
    tmp_path: Path, text: str, bot: str, ours: bool
) -> None:
    server, model = ChatServer(), ScriptedModel([says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        event = replace(said("k"), body=Said(text=text))
        event = replace(event, origin=replace(event.origin, bot=bot))
        receipt = await gateway.accept(event)
        assert isinstance(receipt, Accepted) == ours
        assert isinstance(receipt, Refused) != ours


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("/stauts", "There is no command /stauts. Did you mean /status?"),
        ("/qqqq", "There is no command /qqqq. /help lists them."),
        ("/sta", "Idle."),
        ("/st", "/st could be /status, /steer, /stop."),
        ("/cancel", "Nothing is running."),
        ("/STATUS", "Idle."),
    ],
)
async def test_a_command_name_may_be_abbreviated_misspelt_or_an_alias(
    chat: CommandChat, given: str, shown: str
) -> None:
    assert await chat.asks(given) == shown


async def test_a_path_is_not_a_command(chat: CommandChat) -> None:
    chat.server.says("/etc/passwd is a file")
    await until(lambda: chat.model.requests)


async def test_a_command_that_comes_twice_is_answered_once(chat: CommandChat) -> None:
    number = chat.server.says("/status")
    chat.server.repeat(number)
    await until(lambda: chat.server.texts() == ["Idle."])
    assert (await chat.asks("/help")).startswith("Conversation:")


async def test_a_message_that_begins_with_two_slashes_is_text(tmp_path: Path) -> None:
    model, server = ScriptedModel([says("noted")]), ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("//stop is a command")
        await until(server.texts)
    assert [m.text for m in model.requests[0].messages] == ["/stop is a command"]


def named(name: str, *aliases: str) -> SlashCommand:
    return SlashCommand(name=name, help="a test", action=stop, aliases=aliases)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (named("help"), "/help is a name of the command /help and of /help"),
        (named("assist", "help"), "/help is a name of the command /assist and of /help"),
        (named("reset"), "/reset is a name of the command /new and of /reset"),
        (named("halt", "stop"), "/stop is a name of the command /stop and of /halt"),
        (named("halt", "cancel"), "/cancel is a name of the command /stop and of /halt"),
    ],
)
def test_two_commands_can_not_share_a_name_or_an_alias(command: SlashCommand, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        CommandTable([*builtin_commands(), command])


def test_the_place_of_a_message_is_known() -> None:
    principal = Principal(name="cli", person=OWNER)
    event = said("k")
    assert surface_of(event) == "chat"
    assert surface_of(replace(event, origin=Origin(principal=principal))) == "api"
    typed = Origin(principal=principal, terminal=True)
    assert surface_of(replace(event, origin=typed)) == "terminal"


def replies(command: CommandContext) -> Work[CommandReply]:
    yield from ()
    return CommandReply(reply="done")


GATED = SlashCommand(
    name="reboot",
    help="restart the machine",
    usage="[SECONDS]",
    action=replies,
    aliases=("restart",),
    role=Role.ADMIN,
    setting="machine.reboot",
    surfaces=("chat", "api"),
)


def asked(table: CommandTable, text: str, context: CommandContext) -> CommandReply:
    found = table.find(replace(said("k"), body=Said(text=text)))
    assert found is not None
    action, argument = found
    return result_of(action(replace(context, argument=argument)))


def test_a_refusal_says_which_condition_is_not_met() -> None:
    table = CommandTable([GATED])
    assert asked(table, "/reb", command_context()) == CommandReply(reply="done")
    for context, told in (
        (command_context(surface="terminal"), "/reboot works only in chats and API sessions."),
        (
            command_context(role=Role.USER),
            "Only an admin or an owner may use /reboot. /whoami shows your role, and the settings"
            " `owners` and `admins` change it.",
        ),
    ):
        assert asked(table, "/restart", context) == CommandReply(reply=told, failed=True)


def test_a_setting_can_turn_a_command_off() -> None:
    settings: list[str] = []

    def is_on(setting: str) -> bool:
        settings.append(setting)
        return False

    table = CommandTable([GATED, *builtin_commands()], is_on)
    assert sorted(settings) == ["compression.enabled", "machine.reboot"]
    told = "/reboot is turned off by the setting machine.reboot."
    assert asked(table, "/reboot", command_context()) == CommandReply(reply=told, failed=True)
    assert "/reboot" not in asked(table, "/help", command_context()).reply


def test_help_lists_the_commands_that_the_person_can_use_here() -> None:
    table = CommandTable([GATED, *builtin_commands()])
    every = asked(table, "/help", command_context()).reply
    headings = [line for line in every.splitlines() if not line.startswith("/")]
    assert headings == ["Conversation:", "", "Running turn:", "", "Model:", "", "Other:"]
    assert "/reboot or /restart [SECONDS]: restart the machine" in every.splitlines()
    assert "/stop or /cancel: stop the running turn" in every.splitlines()
    for context in (command_context(role=Role.USER), command_context(surface="terminal")):
        assert "/reboot" not in asked(table, "/help", context).reply


def test_help_explains_one_command() -> None:
    table = CommandTable([GATED])
    line = "/reboot or /restart [SECONDS]: restart the machine"
    for text in ("/help reboot", "/help /restart", "/help REB"):
        assert asked(table, text, command_context()) == CommandReply(reply=line)
    refused = asked(table, "/help reboot", command_context(surface="terminal"))
    assert refused.reply == f"{line}\n/reboot works only in chats and API sessions."
    unknown = asked(table, "/help rebot", command_context())
    assert unknown.failed
    assert unknown.reply == "There is no command /rebot. Did you mean /reboot?"
