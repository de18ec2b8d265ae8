"""Earlier conversations, for those who look after them: listed, read, searched, deleted."""

from hermes.state import compactions, search, session_lock, sessions, transcript, turns
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
    """Sessions, those used last first."""
    return (yield from sessions.listed(platform, limit))


def latest(platform: str) -> Work[Summary | None]:
    """The session that was used last on the platform."""
    found = yield from sessions.listed(platform, 1)
    return found[0] if found else None


def find(name: str) -> Work[Summary]:
    """The session of that key or name, or the only one whose name begins so."""
    found = yield from sessions.named(name)
    if len(found) == 1:
        return found[0]
    if not found:
        raise NoSuchSession(f"there is no session {name!r}: `hermes sessions list` shows them")
    names = ", ".join(one.key if one.chat == name else one.chat for one in found[:5])
    raise NoSuchSession(f"{name!r} could be {names}: give more of the name, or the whole key")


def entries(name: str) -> Work[list[Entry]]:
    """All that was ever said in the session, as it was said."""
    found = yield from find(name)
    return (yield from transcript.entries(found.key))


def waiting(name: str) -> Work[list[OpenQuestion]]:
    """What the session's turn waits to hear from a person."""
    found = yield from find(name)
    turn = yield from turns.open_in(found.key)
    return (yield from turns.open_questions(turn.id)) if turn else []


def searched(query: str, limit: int = 20) -> Work[list[FoundMessage]]:
    """Messages of all sessions that hold words of the query, best first."""
    return (yield from search.search(query, Operator(), limit=limit))


def delete(name: str) -> Work[Summary]:
    """Removes a session and all that was said in it, unless it is at work."""
    found = yield from _idle(name)
    yield from sessions.delete(found.key)
    return found


def restore(name: str) -> Work[int]:
    """Puts back what the session's summaries stand for; how many there were."""
    found = yield from _idle(name)
    return (yield from compactions.restore(found.key))


def _idle(name: str) -> Work[Summary]:
    found = yield from find(name)
    yield from session_lock.lock(found.key)
    if (yield from turns.open_in(found.key)):
        raise SessionBusy(f"{found.key} is at work: /stop it first, or wait for its answer")
    return found
