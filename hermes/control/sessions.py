"""Transactions that list, read, search and delete conversations."""

from hermes.state import compactions, search, sessions, transcript, turns
from hermes.state.audience import Operator
from hermes.state.search import FoundMessage
from hermes.state.sessions import Summary
from hermes.state.transcript import Entry
from hermes.state.turns import OpenQuestion
from hermes.types.errors import HermesError
from hermes.types.store import Work

__all__ = ["Entry", "FoundMessage", "Summary"]


class NoSuchSession(HermesError):
    code = "session_not_found"
    status = 404


class SessionBusy(HermesError):
    code = "session_busy"
    status = 409


def listed(platform: str | None = None, limit: int = 50) -> Work[list[Summary]]:
    """The sessions, most recently used first."""
    return (yield from sessions.listed(platform, limit))


def latest(platform: str) -> Work[Summary | None]:
    """The session that was used most recently on the platform."""
    found = yield from sessions.listed(platform, 1)
    return found[0] if found else None


def find(name: str) -> Work[Summary]:
    """The session with this key or name, or the only one whose name begins with it."""
    found = yield from sessions.named(name)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NoSuchSession(f"there is no session {name!r}: `hermes sessions list` shows them")
    names = ", ".join(one.key if one.chat == name else one.chat for one in found[:5])
    raise NoSuchSession(f"{name!r} could be {names}: give more of the name, or the whole key")


def entries(name: str) -> Work[list[Entry]]:
    """All messages of the session, without its summaries."""
    found = yield from find(name)
    return (yield from transcript.entries(found.key))


def waiting(name: str) -> Work[list[OpenQuestion]]:
    """The questions that the session's turn asks a person."""
    found = yield from find(name)
    turn = yield from turns.open_in(found.key)
    return (yield from turns.open_questions(turn.id)) if turn else []


def searched(query: str, limit: int = 20) -> Work[list[FoundMessage]]:
    """Messages of all sessions that contain words of the query, best matches first."""
    return (yield from search.search(query, Operator(), limit=limit))


def delete(name: str) -> Work[Summary]:
    """Deletes a session and all of its messages; SessionBusy while a turn runs in it."""
    found = yield from _idle(name)
    yield from sessions.delete(found.key)
    return found


def restore(name: str) -> Work[int]:
    """Restores the messages that summaries have replaced; returns the number of summaries."""
    found = yield from _idle(name)
    return (yield from compactions.restore(found.key))


def _idle(name: str) -> Work[Summary]:
    found = yield from find(name)
    if (yield from turns.open_in(found.key)):
        raise SessionBusy(f"{found.key} is at work: /stop it first, or wait for its answer")
    return found
