"""Transactions that list, read, search, rename, resume and delete conversations."""

import re
from collections.abc import Sequence

from hermes.state import (
    compactions,
    conversations,
    questions,
    search,
    session_lock,
    transcript,
    turns,
)
from hermes.state.audience import Operator
from hermes.state.conversations import Summary, short_id
from hermes.state.questions import OpenQuestion
from hermes.state.search import FoundMessage
from hermes.state.sessions import titled
from hermes.state.transcript import Entry
from hermes.types.errors import HermesError
from hermes.types.identity import TurnId
from hermes.types.store import Work

__all__ = ["Entry", "FoundMessage", "OpenQuestion", "Summary", "short_id"]

_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
_PAST = re.compile(r"(.+)\.([1-9][0-9]{0,5})", re.DOTALL)
"""Matches the id of a past conversation: the key of the session, a dot, and the number that the
conversation has in the session."""


class NoSuchSession(HermesError):
    code = "session_not_found"
    status = 404


class SessionBusy(HermesError):
    code = "session_busy"
    status = 409


class NoTitle(HermesError):
    code = "invalid_title"
    status = 400


def listed(platform: str | None = None, limit: int = 50) -> Work[list[Summary]]:
    """Returns conversations, the most recently used first."""
    return (yield from conversations.listed(platform, limit))


def latest(platform: str) -> Work[Summary | None]:
    """Returns the current conversation of the session that was used last on the platform."""
    return (yield from conversations.latest(platform))


def find(name: str) -> Work[Summary]:
    """Returns the conversation that `name` selects.

    A number or an id that `hermes sessions list` shows selects the conversation with this number or
    id. The key of a session, its name or the beginning of its name selects the current conversation
    of the session.
    """
    found = yield from conversations.named(name)
    if not found and _NUMBER.fullmatch(name):
        found = yield from conversations.numbered(int(name))
    if not found and (past := _PAST.fullmatch(name)):
        found = yield from _past(past[1], int(past[2]) - 1)
    found = found or (yield from conversations.resembling(name))
    if len(found) == 1:
        return found[0]
    if not found:
        raise NoSuchSession(
            f"there is no session {name!r}: `hermes sessions list` lists the sessions"
        )
    names = ", ".join(one.key if one.chat == name else one.chat for one in found[:5])
    raise NoSuchSession(f"{name!r} could be {names}: give more of the name, or the whole key")


def _past(name: str, generation: int) -> Work[list[Summary]]:
    sessions = yield from conversations.named(name)
    sessions = sessions or (yield from conversations.resembling(name))
    found: list[Summary] = []
    for one in sessions:
        found += yield from conversations.of_generation(one.key, generation)
    return found


def entries(name: str) -> Work[list[Entry]]:
    """Returns all messages of the conversation, as they were written, without summaries."""
    found = yield from find(name)
    return (yield from entries_of(found))


def entries_of(one: Summary) -> Work[list[Entry]]:
    """Returns all messages of the conversation, as they were written, without summaries."""
    said = yield from transcript.entries(one.key)
    return [entry for entry in said if entry.generation == one.generation]


def waiting(session: str) -> Work[list[OpenQuestion]]:
    """Returns the questions that the session's turn asks and a person still has to answer."""
    turn = yield from turns.open_in(session)
    if turn is None or turn.stop_requested:
        return []
    return (yield from questions.open_questions(turn.id))


def blocked(session: str, turn: str) -> Work[bool]:
    """Returns whether a new turn can't begin, because an earlier turn of the session waits for a
    person."""
    earlier = yield from turns.open_in(session)
    if earlier is None or earlier.id == turn:
        return False
    return bool((yield from waiting(session)))


def open_turn(session: str) -> Work[TurnId | None]:
    """Returns the session's turn that runs or is suspended."""
    found = yield from turns.open_in(session)
    return found.id if found else None


def searched(query: str, limit: int = 20) -> Work[list[FoundMessage]]:
    """Returns messages that contain words of the query, from all sessions, best matches first."""
    return (yield from search.search(query, Operator(), limit=limit))


def ids_of(messages: Sequence[FoundMessage]) -> Work[list[str]]:
    """Returns the id of the conversation of each message."""
    ids = []
    for message in messages:
        found = yield from conversations.of_message(message.number)
        ids.append(found[0].id if found else message.session)
    return ids


def rename(name: str, title: str) -> Work[Summary]:
    """Gives the conversation another title."""
    wanted = titled(title)
    if not wanted:
        raise NoTitle("the title is empty: give it at least one word")
    found = yield from find(name)
    yield from conversations.rename(found, wanted)
    return (yield from conversations.of_generation(found.key, found.generation))[0]


def reopen(name: str) -> Work[Summary]:
    """Makes the conversation the current conversation of its session. Raises SessionBusy if another
    conversation of the session has an open turn."""
    found = yield from find(name)
    if found.current:
        return found
    found = yield from _idle(found)
    yield from conversations.reopen(found)
    return (yield from conversations.of_generation(found.key, found.generation))[0]


def delete(name: str) -> Work[Summary]:
    """Removes a conversation and its messages. Raises SessionBusy if its session has an open
    turn."""
    found = yield from find(name)
    found = yield from _idle(found)
    yield from conversations.delete(found)
    return found


def is_known(key: str) -> Work[bool]:
    """Returns whether there is a session with this key."""
    return bool((yield from conversations.named(key)))


def restore(name: str) -> Work[int]:
    """Removes the summaries of the conversation, which must be the current conversation of its
    session. Returns the number of removed summaries.

    The model then reads the messages that the summaries replaced.
    """
    found = yield from find(name)
    found = yield from _idle(found)
    if not found.current:
        raise NoSuchSession(
            f"the conversation {found.id} has ended: `hermes chat --resume {found.id}` reopens it"
        )
    return (yield from compactions.restore(found.key))


def _idle(found: Summary) -> Work[Summary]:
    yield from session_lock.lock(found.key)
    if (yield from turns.open_in(found.key)):
        raise SessionBusy(
            f"{found.key} has an unfinished turn: /stop it first, or wait for its answer"
        )
    return found
