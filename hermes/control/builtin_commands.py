"""Lists the built-in slash commands, and defines the general commands: stop, status, whoami and
sethome."""

from hermes.control.approval_commands import approval_commands
from hermes.control.handover import handoff
from hermes.control.model_commands import model_commands
from hermes.control.pairing import pair
from hermes.control.session_commands import session_commands
from hermes.control.steering_commands import steering_commands
from hermes.state import chats, inbox, questions, turns
from hermes.types.commands import CommandContext, CommandReply, SlashCommand
from hermes.types.people import Role
from hermes.types.store import Work


def stop(command: CommandContext) -> Work[CommandReply]:
    if command.turn is None:
        return CommandReply(reply="Nothing is running.")
    yield from turns.request_stop(command.turn.id, command.person)
    queued = yield from inbox.count_pending(str(command.session))
    follow = "1 queued message follows." if queued == 1 else f"{queued} queued messages follow."
    reply = f"Stopped. {follow}" if queued else "Stopped."
    return CommandReply(reply=reply, stop=command.turn.id)


def status(command: CommandContext) -> Work[CommandReply]:
    turn = command.turn
    queued = yield from inbox.count_pending(str(command.session))
    tail = f" {queued} queued." if queued else ""
    if turn is None:
        return CommandReply(reply=f"Idle.{tail}")
    seconds = int(command.now - turn.started_at)
    if turn.state == "suspended":
        open_ones = yield from questions.open_questions(turn.id)
        if not open_ones:
            return CommandReply(reply=f"Waiting for the results of your client's tools.{tail}")
        asked = "; ".join(question.brief for question in open_ones)
        return CommandReply(reply=f"Waiting for you: {asked}{tail}")
    steps = f"{turn.steps} step{'s' * (turn.steps != 1)}"
    return CommandReply(reply=f"Working for {seconds} s, {steps} done. /stop ends it.{tail}")


def whoami(command: CommandContext) -> Work[CommandReply]:
    """Shows the ids of the person and of the session."""
    yield from ()
    source = command.source
    return CommandReply(
        reply=f"person: {command.person}\nrole: {command.role.name.lower()}\n"
        f"user: {source.user_id} on {source.account}\nsession: {command.session}"
    )


def sethome(command: CommandContext) -> Work[CommandReply]:
    """Makes the chat, with its thread, the home chat of its account."""
    chat = command.chat
    assert chat is not None, "the command works only in chats"
    yield from chats.set_home(chat, command.now)
    return CommandReply(
        reply=f"This is now the home chat of {chat.account}: messages to {chat.account!r} without"
        " a chat arrive here."
    )


def builtin_commands() -> tuple[SlashCommand, ...]:
    return (
        *session_commands(),
        SlashCommand(
            name="handoff",
            usage="PLATFORM",
            help="continue this conversation in your chat on another platform",
            action=handoff,
            group="conversation",
            while_running=False,
        ),
        SlashCommand(
            name="stop",
            help="stop the running turn",
            action=stop,
            aliases=("cancel",),
            group="turn",
        ),
        SlashCommand(
            name="status",
            help="show what the agent is doing",
            action=status,
            group="turn",
        ),
        *approval_commands(),
        *steering_commands(),
        *model_commands(),
        SlashCommand(name="whoami", help="show your ids and your role", action=whoami),
        SlashCommand(
            name="sethome",
            help="make this chat the home chat, which gets messages without a chat",
            action=sethome,
            aliases=("set-home",),
            role=Role.ADMIN,
            surfaces=("chat",),
        ),
        SlashCommand(
            name="pair",
            usage="[PLATFORM]",
            help="make a code that admits another person",
            action=pair,
            role=Role.ADMIN,
        ),
    )
