"""The commands that steer the work of the agent: /queue, /steer, /retry, /undo and /background."""

import msgspec
from msgspec.structs import replace

from hermes.control.event_content import EDITED
from hermes.state import exchanges, sessions
from hermes.state.exchanges import PastExchange
from hermes.text.quantity import counted
from hermes.types.commands import CommandContext, CommandMessage, CommandReply, SlashCommand
from hermes.types.messages import Attachment, UserMessage
from hermes.types.store import Work

ECHO_CHARS = 200
"""Number of characters of each removed message that /undo shows."""


TEXT_COMMANDS = ("queue", "q", "steer")
"""Names of the commands whose argument is a message to the agent in the same conversation."""


def queue(command: CommandContext) -> Work[CommandReply]:
    """Queues the text, so that it is answered after the running turn, whatever mode the settings
    choose for the chat."""
    yield from ()
    if not command.argument.strip():
        return _missing("/queue TEXT answers the text after the running turn.")
    return _sends(CommandMessage(text=command.argument, mode="queue"))


def steer(command: CommandContext) -> Work[CommandReply]:
    """Adds the text to the running turn, whatever mode the settings choose for the chat."""
    yield from ()
    if not command.argument.strip():
        return _missing("/steer TEXT adds the text to the running turn.")
    return _sends(CommandMessage(text=command.argument, mode="steer"))


def background(command: CommandContext) -> Work[CommandReply]:
    """Answers the text in a new session, so that this conversation can continue meanwhile."""
    yield from ()
    if not command.argument.strip():
        return _missing("/background TEXT answers the text while you go on writing here.")
    message = CommandMessage(text=command.argument, background=True)
    reply = "I work on it in the background and send the answer here."
    return CommandReply(reply=reply, message=message)


def retry(command: CommandContext) -> Work[CommandReply]:
    """Removes the last exchange (a person's message and the answer) from the conversation, and
    answers that message again."""
    generation, found = yield from _last(command, 1)
    if not found:
        return CommandReply(reply="There is no message to answer again.", failed=True)
    try:
        asked = yield from exchanges.questions_of(found[0])
    except msgspec.DecodeError:
        reply = "The last message can't be read. Please send it again."
        return CommandReply(reply=reply, failed=True)
    yield from exchanges.remove_from(found[0], str(command.session), generation, command.now)
    return _sends(_again(asked))


def undo(command: CommandContext) -> Work[CommandReply]:
    """Removes the last exchanges from the conversation, and shows the removed messages."""
    wanted = command.argument.strip() or "1"
    if not wanted.isdecimal() or not 0 < int(wanted) <= 1000:
        return _missing("/undo N removes the last N exchanges, /undo the last one.")
    generation, found = yield from _last(command, int(wanted))
    if not found:
        reply = "There is nothing to remove: the conversation is empty or was summarised."
        return CommandReply(reply=reply, failed=True)
    lines = []
    for exchange in reversed(found):
        try:
            asked = yield from exchanges.questions_of(exchange)
            lines += [f"- {_shortened(message.described)}" for message in asked]
        except msgspec.DecodeError:
            lines.append("- (a message that can't be read)")
    yield from exchanges.remove_from(found[-1], str(command.session), generation, command.now)
    removed = f"Removed {counted(len(found), 'exchange')} from the conversation:"
    return CommandReply(reply="\n".join([removed, "", *lines]))


def _last(command: CommandContext, count: int) -> Work[tuple[int, list[PastExchange]]]:
    """Returns the number of the current conversation and its last exchanges."""
    session = yield from sessions.find(str(command.session))
    if session is None:
        return 0, []
    found = yield from exchanges.last_exchanges(str(command.session), session.generation, count)
    return session.generation, found


def _again(asked: list[UserMessage]) -> CommandMessage:
    """Returns one message with the texts and files of these messages."""
    text = ""
    files: list[Attachment] = []
    for message in asked:
        text += "\n\n" if text else ""
        files += [replace(file, at=len(text) + file.at) for file in message.attachments]
        text += message.text.removeprefix(f"{EDITED}\n")
    # The first of two slashes at the beginning of a text is removed later, so a third slash is
    # added here.
    escaped = f"/{text}" if text.lstrip().startswith("//") else text
    return CommandMessage(text=escaped, attachments=tuple(files))


def _shortened(text: str) -> str:
    line = " ".join(text.removeprefix(f"{EDITED}\n").split())
    return line if len(line) <= ECHO_CHARS else f"{line[: ECHO_CHARS - 1]}…"


def _sends(message: CommandMessage) -> CommandReply:
    return CommandReply(reply="", message=message)


def _missing(usage: str) -> CommandReply:
    """Returns the reply to a command whose argument is missing or wrong."""
    return CommandReply(reply=usage, failed=True)


def steering_commands() -> tuple[SlashCommand, ...]:
    return (
        SlashCommand(
            name="queue",
            usage="TEXT",
            help="answer a text after the running turn",
            action=queue,
            aliases=("q",),
            group="turn",
        ),
        SlashCommand(
            name="steer",
            usage="TEXT",
            help="add a text to the running turn",
            action=steer,
            group="turn",
        ),
        SlashCommand(
            name="background",
            usage="TEXT",
            help="answer a text while you go on writing here",
            action=background,
            aliases=("bg", "btw"),
            group="turn",
            surfaces=("chat",),
        ),
        SlashCommand(
            name="retry",
            help="drop the last answer and answer the message again",
            action=retry,
            group="conversation",
            while_running=False,
        ),
        SlashCommand(
            name="undo",
            usage="[NUMBER]",
            help="remove the last exchanges from the conversation",
            action=undo,
            group="conversation",
            while_running=False,
        ),
    )
