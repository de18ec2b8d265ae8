"""Slash commands: one table for chats, the terminal and the API.

A command is part of the transaction that takes its message in: it happens exactly once.
"""

from collections.abc import Sequence

from hermes.core.window import message_tokens, tokens, tokens_in_bytes
from hermes.state import inbox, sessions, transcript, turns
from hermes.state.transcript import History
from hermes.text.commands import Ambiguous, Unknown, parse_command, resolve
from hermes.types.commands import Action, CommandContext, CommandReply, SlashCommand
from hermes.types.errors import ConfigError
from hermes.types.messages import Asked, Message, MessageEvent, Said, UserMessage
from hermes.types.store import Work
from hermes.types.turns import Prompt


class CommandTable:
    """The commands of a gateway by name, and `/help`, which lists them."""

    def __init__(self, commands: Sequence[SlashCommand]) -> None:
        help_ = SlashCommand(name="help", help="list the commands", action=self._help)
        _check_names((*commands, help_))
        self.commands = {command.name: command for command in (*commands, help_)}
        self._names = {name: command.aliases for name, command in self.commands.items()}

    def find(self, event: MessageEvent) -> tuple[Action, str] | None:
        """The command that a message is, with its argument; None for ordinary words."""
        parsed = parse_command(_text(event))
        if parsed is None:
            return None
        match resolve(parsed.name, self._names):
            case Ambiguous(candidates=candidates):
                names = ", ".join(f"/{name}" for name in candidates)
                return _say(f"/{parsed.name} could be {names}."), ""
            case Unknown(nearest=nearest):
                hint = f" Did you mean /{nearest}?" if nearest else " /help lists them."
                return _say(f"There is no command /{parsed.name}.{hint}"), ""
            case name:
                return self.commands[name].action, parsed.argument

    def _help(self, command: CommandContext) -> Work[CommandReply]:
        yield from ()
        listed = (f"/{one.name}: {one.help}" for one in self.commands.values())
        return CommandReply(reply="\n".join(listed))


def _check_names(commands: Sequence[SlashCommand]) -> None:
    """ConfigError if a name or an alias means two commands."""
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


def _say(text: str) -> Action:
    def say(command: CommandContext) -> Work[CommandReply]:
        yield from ()
        return CommandReply(reply=text)

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
    reply = "A new conversation. What was said before is kept and can be searched."
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
    """What goes to the model with the next message, part by part."""
    session = yield from sessions.find(str(command.session))
    prompt = None
    if session and session.prompt:
        prompt = yield from sessions.prompt_of(session.prompt)
    if session is None or prompt is None:
        return CommandReply(reply="Nothing yet: the prompt is written with the next message.")
    known = History(generation=session.generation, compaction=session.compaction)
    said = yield from transcript.history(str(command.session), known)
    return CommandReply(reply=_shares(prompt, said.messages))


def _shares(prompt: Prompt, messages: Sequence[Message]) -> str:
    sizes = [(part.name, tokens(part.text)) for part in prompt.parts]
    sizes.append(("tools", tokens_in_bytes(prompt.tools)))
    sizes.append((f"conversation ({len(messages)} messages)", sum(map(message_tokens, messages))))
    total = sum(size for _, size in sizes)
    lines = [f"{name}: {size:,} tokens" for name, size in sizes]
    share = total / prompt.window
    return "\n".join([*lines, f"together about {total:,} of {prompt.window:,} ({share:.0%})"])


def builtin_commands() -> tuple[SlashCommand, ...]:
    return (
        SlashCommand(name="stop", help="end what is running", action=stop, aliases=("cancel",)),
        SlashCommand(name="new", help="begin a new conversation", action=new, aliases=("reset",)),
        SlashCommand(name="status", help="what is going on", action=status),
        SlashCommand(name="context", help="what the model is given, and its size", action=context),
    )
