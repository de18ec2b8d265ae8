"""Slash commands: one table for chats, the terminal and the API.

A command is part of the transaction that takes its message in: it happens exactly once.
"""

from collections.abc import Callable, Sequence

from hermes.core.window import tokens, tokens_in, weight
from hermes.state import inbox, sessions, transcript, turns
from hermes.state.transcript import History
from hermes.text.commands import Ambiguous, Unknown, parse_command, resolve
from hermes.types.identity import PersonId, SessionKey, TurnId
from hermes.types.messages import Asked, Message, MessageEvent, Said, UserMessage
from hermes.types.protocols import Work
from hermes.types.turns import Prompt
from hermes.types.value import Value


class Occasion(Value):
    """A command as it was given."""

    session: SessionKey
    person: PersonId
    argument: str
    turn: turns.TurnRow | None
    """The session's open turn."""
    now: float


class Done(Value):
    """What a command did."""

    reply: str
    stop: TurnId | None = None
    """A turn to interrupt once this is committed."""
    ended: bool = False
    """A conversation is over."""


Action = Callable[[Occasion], Work[Done]]


class SlashCommand(Value):
    name: str
    help: str
    action: Action
    aliases: tuple[str, ...] = ()


class CommandTable:
    def __init__(self, commands: Sequence[SlashCommand]) -> None:
        self.commands = {command.name: command for command in commands}
        self._names = {command.name: command.aliases for command in commands}

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


def _text(event: MessageEvent) -> str:
    match event.body:
        case Said(text=text):
            return text
        case Asked(stateless=False, messages=(*_, UserMessage(text=text))):
            return text
        case _:
            return ""


def _say(text: str) -> Action:
    def say(occasion: Occasion) -> Work[Done]:
        yield from ()
        return Done(reply=text)

    return say


def stop(occasion: Occasion) -> Work[Done]:
    if occasion.turn is None:
        return Done(reply="Nothing is running.")
    yield from turns.request_stop(occasion.turn.id, occasion.person)
    queued = yield from inbox.count_pending(str(occasion.session))
    follow = "1 queued message follows." if queued == 1 else f"{queued} queued messages follow."
    reply = f"Stopped. {follow}" if queued else "Stopped."
    return Done(reply=reply, stop=occasion.turn.id)


def new(occasion: Occasion) -> Work[Done]:
    yield from sessions.begin_anew(str(occasion.session), occasion.now)
    reply = "A new conversation. What was said before is kept and can be searched."
    if occasion.turn is None:
        return Done(reply=reply, ended=True)
    yield from turns.request_stop(occasion.turn.id, occasion.person)
    return Done(reply=reply, stop=occasion.turn.id, ended=True)


def status(occasion: Occasion) -> Work[Done]:
    turn = occasion.turn
    queued = yield from inbox.count_pending(str(occasion.session))
    tail = f" {queued} queued." if queued else ""
    if turn is None:
        return Done(reply=f"Idle.{tail}")
    seconds = int(occasion.now - turn.started_at)
    if turn.state == "suspended":
        open_ones = yield from turns.open_questions(turn.id)
        asked = "; ".join(question.prompt for question in open_ones)
        return Done(reply=f"Waiting for you: {asked}{tail}")
    steps = f"{turn.steps} step{'s' * (turn.steps != 1)}"
    return Done(reply=f"Working for {seconds} s, {steps} done. /stop ends it.{tail}")


def context(occasion: Occasion) -> Work[Done]:
    """What goes to the model with the next message, part by part."""
    session = yield from sessions.find(str(occasion.session))
    prompt = None
    if session and session.prompt:
        prompt = yield from sessions.prompt_of(session.prompt)
    if session is None or prompt is None:
        return Done(reply="Nothing yet: the prompt is written with the next message.")
    known = History(generation=session.generation, compaction=session.compaction)
    said = yield from transcript.history(str(occasion.session), known)
    return Done(reply=_shares(prompt, said.messages))


def _shares(prompt: Prompt, messages: Sequence[Message]) -> str:
    sizes = [(part.name, tokens(part.text)) for part in prompt.parts]
    sizes.append(("tools", tokens_in(prompt.tools)))
    sizes.append((f"conversation ({len(messages)} messages)", sum(map(weight, messages))))
    total = sum(size for _, size in sizes)
    lines = [f"{name}: {size:,} tokens" for name, size in sizes]
    share = total / prompt.window
    return "\n".join([*lines, f"together about {total:,} of {prompt.window:,} ({share:.0%})"])


def _help(table: Sequence[SlashCommand]) -> Action:
    def show(occasion: Occasion) -> Work[Done]:
        yield from ()
        return Done(reply="\n".join(f"/{command.name}: {command.help}" for command in table))

    return show


def builtin_commands() -> CommandTable:
    commands = [
        SlashCommand(name="stop", help="end what is running", action=stop, aliases=("cancel",)),
        SlashCommand(name="new", help="begin a new conversation", action=new, aliases=("reset",)),
        SlashCommand(name="status", help="what is going on", action=status),
        SlashCommand(name="context", help="what the model is given, and its size", action=context),
    ]
    listed: list[SlashCommand] = [*commands]
    listed.append(SlashCommand(name="help", help="this list", action=_help(listed)))
    return CommandTable(listed)
