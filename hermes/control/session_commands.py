"""Slash commands about conversations: begin, name, copy, list, resume and summarise them."""

from collections.abc import Sequence

from msgspec.structs import replace

from hermes.core.compaction import range_on_request
from hermes.state import branches, conversations, sessions, transcript, turns
from hermes.state.conversations import Summary
from hermes.state.transcript import History
from hermes.text.quantity import counted
from hermes.types.commands import CommandContext, CommandReply, SlashCommand
from hermes.types.messages import UserMessage
from hermes.types.store import Work

MOST_LISTED = 20
"""Maximum number of conversations in the reply of /sessions."""
MOST_SEARCHED = 500
"""The commands /sessions and /resume search this many conversations, beginning with the most
recently used one."""


def new(command: CommandContext) -> Work[CommandReply]:
    session, title = str(command.session), command.argument.strip()
    yield from sessions.begin_anew(session, command.now)
    named = ""
    if title:
        yield from create_session(command)
        yield from sessions.rename(session, title)
        named = f" with the title “{sessions.titled(title)}”"
    reply = f"A new conversation{named}. The earlier messages are kept and can be searched."
    if command.turn is None:
        return CommandReply(reply=reply, ended=True)
    yield from turns.request_stop(command.turn.id, command.person)
    return CommandReply(reply=reply, stop=command.turn.id, ended=True)


def title(command: CommandContext) -> Work[CommandReply]:
    """Shows or changes the title of the conversation."""
    session, wanted = str(command.session), command.argument.strip()
    if wanted:
        yield from create_session(command)
        yield from sessions.rename(session, wanted)
        return CommandReply(reply=f"The title is now “{sessions.titled(wanted)}”.")
    known = yield from sessions.title_of(session)
    if not known:
        return CommandReply(reply="This conversation has no title yet. /title TITLE sets one.")
    return CommandReply(reply=f"The title is “{known}”. /title TITLE changes it.")


def branch(command: CommandContext) -> Work[CommandReply]:
    """Continues in a copy of the conversation."""
    session = str(command.session)
    found = yield from conversations.current(session)
    if found is None:
        return CommandReply(reply="There is nothing to copy yet.", failed=True)
    name = sessions.titled(command.argument) or sessions.titled(f"{found.title} (branch)")
    yield from branches.branch(session, name)
    return CommandReply(
        reply=f"This is now a copy of the conversation, with the title “{name}”."
        " /sessions shows how to go back to the original."
    )


def list_sessions(command: CommandContext) -> Work[CommandReply]:
    """Lists the conversations of this chat whose title contains the argument."""
    known = yield from _conversations(command)
    return CommandReply(reply=listed(known, command.argument.strip(), command.now))


def resume(command: CommandContext) -> Work[CommandReply]:
    """Continues an earlier conversation of this chat. The argument is the number or the title of
    the conversation."""
    wanted = command.argument.strip()
    if not wanted:
        return (yield from list_sessions(command))
    known = yield from _conversations(command)
    match meant(known, wanted):
        case []:
            reply = f"There is no conversation “{wanted}” here. /sessions lists them."
            return CommandReply(reply=reply, failed=True)
        case [Summary(current=True)]:
            return CommandReply(reply="This is the current conversation.")
        case [found]:
            yield from conversations.reopen(found)
            return CommandReply(reply=continued(found))
        case several:
            return CommandReply(reply=ambiguous(several, wanted, command.now), failed=True)


def compress(command: CommandContext) -> Work[CommandReply]:
    """Requests that the next turn summarise the conversation first."""
    session = str(command.session)
    row = yield from sessions.find(session)
    if row is not None:
        known = History(generation=row.generation, compaction=row.compaction)
        said = (yield from transcript.history(session, known)).messages
        # The last request is never summarised. The summary is made after the person's next message
        # has arrived, so an empty message takes the place of the next message here.
        if range_on_request((*said, UserMessage(text=""))) is not None:
            yield from sessions.set_summarise(session, wanted=True)
            return CommandReply(
                reply="The earlier messages are summarised before your next message is answered."
                " They are kept and can be searched."
            )
    return CommandReply(reply="There are too few messages to summarise.", failed=True)


def create_session(command: CommandContext) -> Work[None]:
    """Creates the session if the command is the first message of the session."""
    yield from sessions.create_if_missing(
        command.session, command.source, command.person, command.now
    )


def _conversations(command: CommandContext) -> Work[list[Summary]]:
    """Returns the conversations that the person may resume here: the conversations of this chat
    that contain a message of the person."""
    session = str(command.session)
    found = yield from conversations.of_person(session, command.person, MOST_SEARCHED)
    # The generation gives each conversation a number that never changes, unlike its position in a
    # list.
    return [replace(one, number=one.generation + 1) for one in found]


def meant(known: Sequence[Summary], wanted: str) -> list[Summary]:
    """Returns the conversation whose number is `wanted`. If no conversation has this number,
    returns the conversations with the title `wanted`. If no conversation has this title, returns
    the conversations whose title contains `wanted`."""
    title = wanted.casefold()
    return (
        [one for one in known if str(one.number) == wanted]
        or [one for one in known if one.title.casefold() == title]
        or [one for one in known if title in one.title.casefold()]
    )


def continued(one: Summary) -> str:
    """Returns the confirmation that a conversation is continued."""
    return f"“{one.title}” is continued. It has {counted(one.messages, 'message')} so far."


def listed(known: Sequence[Summary], words: str, now: float) -> str:
    """Returns the list of the conversations whose title contains the words."""
    found = [one for one in known if words.casefold() in one.title.casefold()]
    if found:
        return "\n".join(_line(one, now) for one in found[:MOST_LISTED])
    if words:
        return f"There is no conversation with “{words}” in its title here."
    return "There are no conversations here yet."


def ambiguous(found: Sequence[Summary], wanted: str, now: float, command: str = "/resume") -> str:
    """Returns the reply to a title that several conversations have. `command` is the command or
    the option that resumes one of them by its number."""
    lines = (_line(one, now, command) for one in found[:MOST_LISTED])
    return "\n".join([f"“{wanted}” could be one of these:", *lines])


def _line(one: Summary, now: float, command: str = "/resume") -> str:
    said = counted(one.messages, "message")
    return f"{command} {one.number}: {one.title} ({said}, {_age(now - one.updated_at)})"


def _age(seconds: float) -> str:
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= unit:
            return f"{counted(int(seconds // unit), name)} ago"
    return "just now"


def session_commands() -> tuple[SlashCommand, ...]:
    return (
        SlashCommand(
            name="new",
            usage="[TITLE]",
            help="begin a new conversation",
            action=new,
            aliases=("reset",),
            group="conversation",
        ),
        SlashCommand(
            name="title",
            usage="[TITLE]",
            help="show or change the title of this conversation",
            action=title,
            group="conversation",
        ),
        SlashCommand(
            name="branch",
            usage="[TITLE]",
            help="continue in a copy of this conversation",
            action=branch,
            aliases=("fork",),
            group="conversation",
            while_running=False,
        ),
        SlashCommand(
            name="sessions",
            usage="[WORDS]",
            help="list the conversations of this chat",
            action=list_sessions,
            group="conversation",
        ),
        SlashCommand(
            name="resume",
            usage="[NUMBER or TITLE]",
            help="continue an earlier conversation of this chat",
            action=resume,
            group="conversation",
            while_running=False,
        ),
        SlashCommand(
            name="compress",
            help="summarise the earlier messages of this conversation",
            action=compress,
            aliases=("compact",),
            group="conversation",
            while_running=False,
            setting="compression.enabled",
        ),
    )
