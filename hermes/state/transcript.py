"""What was said in a session."""

import logging

import msgspec

from hermes.state import compactions
from hermes.state.codec import decode_message, encode
from hermes.state.compactions import Compaction, Span
from hermes.types.identity import PersonId, SessionKey
from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.store import Row, Work
from hermes.types.value import Value

log = logging.getLogger(__name__)

SEARCHED_CHARS = 65_536
"""Characters of a message that a search looks at. To index megabytes would delay all commits."""


class Scribe(Value):
    """Where a turn's messages are written."""

    turn: str
    session: SessionKey
    generation: int
    transient: bool
    """Of a stateless request: kept for a resume and a replay, in no transcript and no search."""
    account: str
    person: PersonId | None


class History(Value):
    """What was said in a generation of a session, up to a row."""

    generation: int
    since: float = 0.0
    """When the session was made: one that was deleted and made again is another."""
    compaction: int = 0
    """The newest summary in it."""
    size: int = 0
    """Bytes of it in the store."""
    last: int = 0
    """The newest row of it: later ones are added, none is ever changed."""
    messages: tuple[Message, ...] = ()
    spans: tuple[Span, ...] = ()
    """The rows that each message stands for."""


def append(scribe: Scribe, step: int, index: int, message: Message, now: float) -> Work[int]:
    """Adds a message at its place in the turn, a repeat changes nothing; the number of its row."""
    rows = yield (
        "insert into messages (session, generation, turn, step, idx, role, body, text, transient,"
        " agent, person, account, chat_id, at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing returning id",
        (
            str(scribe.session),
            scribe.generation,
            scribe.turn,
            step,
            index,
            role(message),
            encode(message),
            "" if isinstance(message, ToolMessage) else message.text[:SEARCHED_CHARS],
            int(scribe.transient),
            scribe.session.agent,
            scribe.person,
            scribe.account,
            scribe.session.chat,
            now,
        ),
    )
    if not rows:
        rows = yield (
            "select id from messages where turn = ? and step = ? and idx = ?",
            (scribe.turn, step, index),
        )
    number: int = rows[0][0]
    return number


def history(session: str, known: History) -> Work[History]:
    """All that was said in the session, as far as it is not known already."""
    summaries: list[Compaction] = []
    if known.compaction and not known.last:
        summaries = yield from compactions.active(session, known.generation)
    left_out = "".join(" and not (id between ? and ?)" for _ in summaries)
    rows = yield (
        "select id, turn, step, idx, body from messages"  # noqa: S608
        f" where session = ? and generation = ? and transient = 0 and id > ?{left_out} order by id",
        (session, known.generation, known.last, *(row for one in summaries for row in one.span)),
    )
    said: list[tuple[Span, Message]] = []
    for row, message in _usable(_in_order(rows)):
        while summaries and summaries[0].span[1] < row[0]:
            said.append((summaries[0].span, summaries.pop(0).summary))
        said.append(((row[0], row[0]), message))
    said += [(one.span, one.summary) for one in summaries]
    if not said:
        return known
    return History(
        generation=known.generation,
        since=known.since,
        compaction=known.compaction,
        size=known.size + sum(len(row[4]) for row in rows),
        last=max(known.last, *(span[1] for span, _ in said)),
        messages=(*known.messages, *(message for _, message in said)),
        spans=(*known.spans, *(span for span, _ in said)),
    )


def _in_order(rows: list[Row]) -> list[Row]:
    """By their places: results of calls that ran side by side are stored as they came."""
    turns: dict[str, list[Row]] = {}
    for row in rows:
        turns.setdefault(row[1], []).append(row)
    return [row for own in turns.values() for row in sorted(own, key=lambda row: row[2:4])]


def _readable(rows: list[Row]) -> list[tuple[Row, Message]]:
    """The messages of the rows, without those that can't be read."""
    found: list[tuple[Row, Message]] = []
    for row in rows:
        try:
            found.append((row, decode_message.decode(row[4])))
        except msgspec.DecodeError as error:
            log.error("message %s of turn %s can't be read, it is left out: %s", *row[:2], error)
    return found


def _usable(rows: list[Row]) -> list[tuple[Row, Message]]:
    """The messages that a model can be given.

    Of a turn with a message that can't be read only the person's words are kept: no model accepts
    the results of calls that nobody made.
    """
    found = _readable(rows)
    if len(found) == len(rows):
        return found
    read = {row[0] for row, _ in found}
    damaged = {row[1] for row in rows if row[0] not in read}
    return [(row, said) for row, said in found if row[1] not in damaged or row[2] < 0]


def of_turn(turn: str) -> Work[list[Message]]:
    rows = yield "select body from messages where turn = ? order by step, idx", (turn,)
    return [decode_message.decode(row[0]) for row in rows]


def role(message: Message) -> str:
    match message:
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case ToolMessage():
            return "tool"


class Entry(Value):
    """A message with its place in time, as an export tells it."""

    at: float
    generation: int
    turn: str
    message: Message


def entries(session: str) -> Work[list[Entry]]:
    """All that was ever said in the session, in order; summaries are not among it."""
    rows = yield (
        "select id, turn, step, idx, body, at, generation from messages"
        " where session = ? and transient = 0 order by id",
        (session,),
    )
    return [
        Entry(at=row[5], generation=row[6], turn=row[1], message=message)
        for row, message in _readable(_in_order(rows))
    ]
