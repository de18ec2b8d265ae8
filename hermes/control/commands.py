"""The table of slash commands: one table for chats, the terminal and the API.

A command runs in the transaction that stores its message, so it runs exactly once. Every command is
answered: if it can't be found or may not be used, the reply says why.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import get_args

from hermes.text.commands import Ambiguous, Unknown, parse_command, resolve
from hermes.types.commands import (
    Action,
    CommandContext,
    CommandGroup,
    CommandReply,
    CommandSurface,
    SlashCommand,
)
from hermes.types.errors import ConfigError
from hermes.types.messages import Asked, MessageEvent, Said, UserMessage
from hermes.types.people import Role
from hermes.types.store import Work

GROUP_HEADINGS: dict[CommandGroup, str] = {
    "conversation": "Conversation",
    "turn": "Running turn",
    "model": "Model",
    "other": "Other",
}
SURFACE_NAMES: dict[CommandSurface, str] = {
    "terminal": "the terminal",
    "chat": "chats",
    "api": "API sessions",
}
ROLE_NAMES = {Role.USER: "a user", Role.ADMIN: "an admin", Role.OWNER: "an owner"}


class CommandTable:
    """The commands of a gateway by name, and `/help`, which lists them."""

    def __init__(
        self, commands: Sequence[SlashCommand], is_on: Callable[[str], bool] = lambda setting: True
    ) -> None:
        """`is_on` returns the value of the boolean setting with this key. It raises ConfigError if
        there is no such setting."""
        help_ = SlashCommand(
            name="help", usage="[NAME]", help="list the commands, or explain one", action=self._help
        )
        _check_names((*commands, help_))
        self.commands = {command.name: command for command in (*commands, help_)}
        self._names = {name: command.aliases for name, command in self.commands.items()}
        settings = {one.setting for one in self.commands.values() if one.setting}
        self._off = {setting for setting in settings if not is_on(setting)}

    def find(self, event: MessageEvent) -> tuple[Action, str] | None:
        """Returns the action for the command in a message, with its argument; None if the message
        is not a command. The action checks whether the sender can use the command now."""
        if isinstance(event.body, Asked) and event.body.stateless:
            return self._find_stateless(event.body)
        parsed = parse_command(_text(event))
        if parsed is None:
            return None
        match self._named(parsed.name):
            case SlashCommand() as command:
                return partial(self._run, command), parsed.argument
            case reason:
                return _fail(reason), ""

    def _find_stateless(self, asked: Asked) -> tuple[Action, str] | None:
        """Returns the action for the command in a request without a session. Only a few commands
        can be used in such a request. Every other text that looks like a command is a message for
        the model."""
        last = asked.messages[-1] if asked.messages else None
        parsed = parse_command(last.text) if isinstance(last, UserMessage) else None
        command = self.commands.get(parsed.name) if parsed else None
        if parsed is None or command is None or not command.stateless:
            return None
        return partial(self._run, command), parsed.argument

    def refusal(
        self, command: SlashCommand, role: Role, surface: CommandSurface, *, running: bool = False
    ) -> str | None:
        """Returns a sentence that says why the command can't be used now; None if it can be used.
        `surface` is the place where the command was typed: a chat, the terminal or the API.
        `running` says whether a turn of the session is unfinished."""
        if surface not in command.surfaces:
            places = " and ".join(SURFACE_NAMES[one] for one in command.surfaces)
            return f"/{command.name} works only in {places}."
        if role < command.role:
            allowed = " or ".join(ROLE_NAMES[one] for one in Role if one >= command.role)
            return (
                f"Only {allowed} may use /{command.name}. /whoami shows your role, and the settings"
                " `owners` and `admins` change it."
            )
        if command.setting in self._off:
            return f"/{command.name} is turned off by the setting {command.setting}."
        if running and not command.while_running:
            return f"/{command.name} can't be used during a turn: wait for its end, or /stop it."
        return None

    def usable(self, role: Role, surface: CommandSurface) -> tuple[SlashCommand, ...]:
        """Returns the commands that a person with this role can use on this surface: a chat, the
        terminal or the API."""
        found = self.commands.values()
        return tuple(one for one in found if self.refusal(one, role, surface) is None)

    def _named(self, name: str) -> SlashCommand | str:
        """Returns the command for a name that a person has typed. If no command has this name, or
        several could be meant, returns a sentence that says so."""
        match resolve(name, self._names):
            case Ambiguous(candidates=candidates):
                names = ", ".join(f"/{candidate}" for candidate in candidates)
                return f"/{name} could be {names}."
            case Unknown(nearest=nearest):
                hint = f" Did you mean /{nearest}?" if nearest else " /help lists them."
                return f"There is no command /{name}.{hint}"
            case found:
                return self.commands[found]

    def _run(self, command: SlashCommand, context: CommandContext) -> Work[CommandReply]:
        running = context.turn is not None
        reason = self.refusal(command, context.role, context.surface, running=running)
        if reason is not None:
            return CommandReply(reply=reason, failed=True)
        return (yield from command.action(context))

    def _help(self, command: CommandContext) -> Work[CommandReply]:
        yield from ()
        if name := command.argument.strip().removeprefix("/"):
            found = self._named(name.lower())
            if isinstance(found, str):
                return CommandReply(reply=found, failed=True)
            reason = self.refusal(found, command.role, command.surface)
            return CommandReply(reply="\n".join([described(found), *([reason] if reason else [])]))
        usable = self.usable(command.role, command.surface)
        groups = []
        for group in get_args(CommandGroup):
            listed = [described(one) for one in usable if one.group == group]
            if listed:
                groups.append("\n".join([f"{GROUP_HEADINGS[group]}:", *listed]))
        return CommandReply(reply="\n\n".join(groups))


def described(command: SlashCommand) -> str:
    """Returns the line of /help that describes a command: its names, its arguments and its
    effect."""
    names = " or ".join(f"/{name}" for name in (command.name, *command.aliases))
    usage = f" {command.usage}" if command.usage else ""
    return f"{names}{usage}: {command.help}"


def surface_of(event: MessageEvent) -> CommandSurface:
    """Returns where a message was written: in a chat, in the terminal or over the API."""
    if event.origin.reply_to is not None:
        return "chat"
    return "terminal" if event.origin.terminal else "api"


def names_another_bot(event: MessageEvent) -> bool:
    """Returns whether the message is a command for another bot of the chat, as in
    `/stop@other_bot`."""
    parsed = parse_command(_text(event))
    return parsed is not None and parsed.bot.casefold() not in ("", event.origin.bot.casefold())


def _check_names(commands: Sequence[SlashCommand]) -> None:
    """Raises ConfigError if two commands have the same name or alias."""
    taken: dict[str, str] = {}
    for command in commands:
        for name in (command.name, *command.aliases):
            if name in taken:
                raise ConfigError(
                    f"/{name} is a name of the command /{taken[name]} and of /{command.name}:"
                    " rename one of them, or uninstall its plugin"
                )
            taken[name] = command.name


def _text(event: MessageEvent) -> str:
    match event.body:
        case Said(text=text):
            return text
        case Asked(stateless=False, messages=(*_, UserMessage(text=text))):
            return text
        case _:
            return ""


def _fail(text: str) -> Action:
    """Returns an action that only replies with this text, for a message whose command can't be
    found."""

    def say(command: CommandContext) -> Work[CommandReply]:
        yield from ()
        return CommandReply(reply=text, failed=True)

    return say
