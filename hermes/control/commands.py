"""Slash commands: one table for chats, the terminal and the API.

A command runs in the transaction that stores its message, so it runs exactly once.
"""

from collections.abc import Sequence

from hermes.control.context_use import context_use
from hermes.control.handover import handoff
from hermes.control.pairing import pair
from hermes.control.steering_commands import steering_commands
from hermes.state import chats, inbox, sessions, turns
from hermes.text.commands import Ambiguous, Unknown, parse_command, resolve
from hermes.types.commands import Action, CommandContext, CommandReply, SlashCommand
from hermes.types.errors import ConfigError
from hermes.types.messages import Asked, MessageEvent, Said, UserMessage
from hermes.types.store import Work

USUAL_MODEL = "default"
"""The argument of /model that chooses the agent's own model again."""


class CommandTable:
    """The commands of a gateway by name, and `/help`, which lists them."""

    def __init__(self, commands: Sequence[SlashCommand]) -> None:
        help_ = SlashCommand(name="help", help="list the commands", action=self._help)
        _check_names((*commands, help_))
        self.commands = {command.name: command for command in (*commands, help_)}
        self._names = {name: command.aliases for name, command in self.commands.items()}

    def find(self, event: MessageEvent) -> tuple[Action, str] | None:
        """Returns the command in a message, with its argument; None if the message is not a
        command."""
        parsed = parse_command(_text(event))
        if parsed is None:
            return None
        match resolve(parsed.name, self._names):
            case Ambiguous(candidates=candidates):
                names = ", ".join(f"/{name}" for name in candidates)
                return _fail(f"/{parsed.name} could be {names}."), ""
            case Unknown(nearest=nearest):
                hint = f" Did you mean /{nearest}?" if nearest else " /help lists them."
                return _fail(f"There is no command /{parsed.name}.{hint}"), ""
            case name:
                return self.commands[name].action, parsed.argument

    def _help(self, command: CommandContext) -> Work[CommandReply]:
        yield from ()
        listed = (f"/{one.name}: {one.help}" for one in self.commands.values())
        return CommandReply(reply="\n".join(listed))


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


def stop(command: CommandContext) -> Work[CommandReply]:
    if command.turn is None:
        return CommandReply(reply="Nothing is running.")
    yield from turns.request_stop(command.turn.id, command.person)
    queued = yield from inbox.count_pending(str(command.session))
    follow = "1 queued message follows." if queued == 1 else f"{queued} queued messages follow."
    reply = f"Stopped. {follow}" if queued else "Stopped."
    return CommandReply(reply=reply, stop=command.turn.id)


def new(command: CommandContext) -> Work[CommandReply]:
    yield from sessions.begin_anew(str(command.session), command.now)
    reply = "A new conversation. The earlier messages are kept and can be searched."
    if command.turn is None:
        return CommandReply(reply=reply, ended=True)
    yield from turns.request_stop(command.turn.id, command.person)
    return CommandReply(reply=reply, stop=command.turn.id, ended=True)


def status(command: CommandContext) -> Work[CommandReply]:
    turn = command.turn
    queued = yield from inbox.count_pending(str(command.session))
    tail = f" {queued} queued." if queued else ""
    if turn is None:
        return CommandReply(reply=f"Idle.{tail}")
    seconds = int(command.now - turn.started_at)
    if turn.state == "suspended":
        open_ones = yield from turns.open_questions(turn.id)
        if not open_ones:
            return CommandReply(reply=f"Waiting for the results of your client's tools.{tail}")
        asked = "; ".join(question.prompt for question in open_ones)
        return CommandReply(reply=f"Waiting for you: {asked}{tail}")
    steps = f"{turn.steps} step{'s' * (turn.steps != 1)}"
    return CommandReply(reply=f"Working for {seconds} s, {steps} done. /stop ends it.{tail}")


def context(command: CommandContext) -> Work[CommandReply]:
    """Shows the size of each part that is sent to the model with the next message."""
    used = yield from context_use(str(command.session), command.find_model)
    if not used.parts:
        return CommandReply(reply="Nothing yet: the prompt is written with the next message.")
    lines = [f"{part.name}: {part.tokens:,} tokens" for part in used.parts]
    total = f"together about {used.tokens:,} of {used.window:,} ({used.share:.0%})"
    return CommandReply(reply="\n".join([*lines, total]))


def model(command: CommandContext) -> Work[CommandReply]:
    """Shows or changes the model of the session; a running turn keeps its model."""
    session, wanted = str(command.session), command.argument.strip()
    usual = wanted.casefold() == USUAL_MODEL
    chosen = "" if usual else wanted or (yield from sessions.model_of(session)) or ""
    try:
        choice = command.find_model(chosen)
    except ConfigError as error:
        way_back = f"\n/model {USUAL_MODEL} goes back to the usual model." if chosen else ""
        return CommandReply(reply=f"{error}{way_back}", failed=True)
    answers = f"{choice.model} of {choice.provider} answers in this conversation"
    if not wanted:
        return CommandReply(
            reply=f"{answers}. /model NAME chooses another one, /model {USUAL_MODEL} the usual one."
        )
    yield from sessions.set_model(session, None if usual else f"{choice.provider}/{choice.model}")
    return CommandReply(reply=f"{answers}, from the next message on.")


def sethome(command: CommandContext) -> Work[CommandReply]:
    """Makes the chat, with its thread, the home chat of its account."""
    chat = command.chat
    if chat is None:
        reply = "Only a chat can be the home chat: write /sethome in one."
        return CommandReply(reply=reply, failed=True)
    yield from chats.set_home(chat, command.now)
    return CommandReply(
        reply=f"This is now the home chat of {chat.account}: messages to {chat.account!r} without"
        " a chat arrive here."
    )


def builtin_commands() -> tuple[SlashCommand, ...]:
    return (
        SlashCommand(name="stop", help="stop the running turn", action=stop, aliases=("cancel",)),
        SlashCommand(name="new", help="begin a new conversation", action=new, aliases=("reset",)),
        SlashCommand(name="status", help="what is going on", action=status),
        SlashCommand(
            name="model", help="show or change the model of this conversation", action=model
        ),
        SlashCommand(
            name="context", help="show the parts of the context and their sizes", action=context
        ),
        SlashCommand(
            name="sethome",
            help="make this chat the home chat, which gets messages without a chat",
            action=sethome,
            aliases=("set-home",),
        ),
        *steering_commands(),
        SlashCommand(
            name="handoff",
            help="continue this conversation in your chat on another platform",
            action=handoff,
        ),
        SlashCommand(name="pair", help="make a code that admits another person", action=pair),
    )
