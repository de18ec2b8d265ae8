"""The transcript: the messages of each session."""

from hermes.state import bodies, compactions
from hermes.state.codec import checksum, decode_message, encode
from hermes.state.compactions import Compaction, Span
from hermes.state.storable import storable
from hermes.state.unreadable import BODY, BODY_NAME, MESSAGE_COLUMNS, decoded, marked, repaired
from hermes.types.identity import PersonId, SessionKey, parse_call_id
from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.store import Row, Work
from hermes.types.value import Value

QUESTION_STEP = -1
"""The step of the message that opens a turn, which comes before step 0."""
SEARCHED_CHARS = 65_536
"""Number of characters of a message that are indexed. Indexing megabytes would delay all
commits."""


class TranscriptWriter(Value):
    """The turn, session and conversation to which messages are written."""

    turn: str
    session: SessionKey
    generation: int
    transient: bool
    """Whether the request is stateless. The messages of a stateless request are stored, so that its
    turn can be resumed, but they do not appear in a transcript or a search."""
    account: str
    person: PersonId | None


class History(Value):
    """The messages of one conversation of a session, up to the row with the number `last`."""

    generation: int
    since: float = 0.0
    """Creation time of the session. It distinguishes the session from a deleted session with the
    same key."""
    compaction: int = 0
    """The id of the newest summary; 0 if there is none."""
    size: int = 0
    """Number of bytes that these messages occupy in the store."""
    last: int = 0
    """The number of the newest row that was read. Later rows may be added, but rows never
    change."""
    messages: tuple[Message, ...] = ()
    spans: tuple[Span, ...] = ()
    """For each message, the rows that it represents. A summary represents all rows that it
    replaces."""


def append(
    writer: TranscriptWriter, step: int, index: int, message: Message, now: float
) -> Work[int]:
    """Stores a message. `step` and `index` are its position: `step` counts the steps of the turn,
    and `index` counts the messages of the step. Returns the number of the message's row. Repeating
    the call changes nothing."""
    body = encode(message)
    kept, name = yield from bodies.store(body)
    rows = yield (
        "insert into messages (session, generation, turn, step, idx, role, body, body_name, crc,"
        " text, transient, agent, person, account, chat_id, at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict do nothing returning id",
        (
            str(writer.session),
            writer.generation,
            writer.turn,
            step,
            index,
            role(message),
            kept,
            name,
            checksum(body),
            "" if isinstance(message, ToolMessage) else storable(message.text[:SEARCHED_CHARS]),
            int(writer.transient),
            writer.session.agent,
            writer.person,
            writer.account,
            writer.session.chat,
            now,
        ),
    )
    if not rows:
        rows = yield (
            "select id from messages where turn = ? and step = ? and idx = ?",
            (writer.turn, step, index),
        )
    number: int = rows[0][0]
    return number


def next_index(turn: str, step: int) -> Work[int]:
    """Returns the index that the next message in this step of the turn gets. A step is a model call
    with its tool results."""
    rows = yield (
        "select coalesce(max(idx), -1) + 1 from messages where turn = ? and step = ?",
        (turn, step),
    )
    index: int = rows[0][0]
    return index


def history(session: str, known: History) -> Work[History]:
    """Returns the history of the session: the known part, and the messages that were added after
    it."""
    summaries: list[Compaction] = []
    if known.compaction and not known.last:
        summaries = yield from compactions.active(session, known.generation)
    left_out = "".join(" and not (id between ? and ?)" for _ in summaries)
    rows = yield (
        f"select {MESSAGE_COLUMNS} from messages"  # noqa: S608
        f" where session = ? and generation = ? and transient = 0 and id > ?{left_out} order by id",
        (session, known.generation, known.last, *(row for one in summaries for row in one.span)),
    )
    rows = yield from bodies.filled(rows, BODY, BODY_NAME)
    said: list[tuple[Span, Message | None]] = []
    for span, message in repaired(decoded(_in_order(rows)), known.messages):
        while summaries and summaries[0].span[1] < span[0]:
            said.append((summaries[0].span, summaries.pop(0).summary))
        said.append((span, message))
    said += [(one.span, one.summary) for one in summaries]
    if not said:
        return known
    shown = [(span, message) for span, message in said if message is not None]
    return History(
        generation=known.generation,
        since=known.since,
        compaction=known.compaction,
        size=known.size + sum(len(row[BODY]) for row in rows),
        last=max(known.last, *(span[1] for span, _ in said)),
        messages=(*known.messages, *(message for _, message in shown)),
        spans=(*known.spans, *(span for span, _ in shown)),
    )


def _in_order(rows: list[Row]) -> list[Row]:
    """Sorts the rows of each turn by their position in the turn. The rows may have another order,
    because results of parallel calls are stored in the order in which they arrive."""
    turns: dict[str, list[Row]] = {}
    for row in rows:
        turns.setdefault(row[1], []).append(row)
    return [row for own in turns.values() for row in sorted(own, key=lambda row: row[2:4])]


def ends_with(turn: str, session: str, generation: int) -> Work[bool]:
    """Returns whether the last message of the conversation belongs to the turn."""
    rows = yield (
        "select turn from messages where session = ? and generation = ? and transient = 0"
        " order by id desc limit 1",
        (session, generation),
    )
    return bool(rows) and rows[0][0] == turn


def is_empty(session: str, generation: int) -> Work[bool]:
    """Returns whether the conversation has no messages yet."""
    rows = yield (
        "select 1 from messages where session = ? and generation = ? and transient = 0 limit 1",
        (session, generation),
    )
    return not rows


def of_turn(turn: str) -> Work[list[Message]]:
    """Returns the messages of the turn. Raises DecodeError if one of them can't be read."""
    rows = yield (
        "select body, crc, body_name from messages where turn = ? order by step, idx",
        (turn,),
    )
    whole = yield from bodies.filled(rows, 0, 2)
    return [decode_message(body, crc) for body, crc, _ in whole]


def answer_open_calls(writer: TranscriptWriter, text: str, now: float) -> Work[None]:
    """Adds a result to every open call of the turn, because no model accepts a history with an open
    call."""
    own = yield from of_turn(writer.turn)
    answered = {message.call for message in own if isinstance(message, ToolMessage)}
    for message in (m for m in own if isinstance(m, AssistantMessage)):
        for index, call in enumerate(message.calls, 1):
            place = parse_call_id(call.id)
            if call.id not in answered and place is not None:
                result = ToolMessage(call=call.id, text=text, failed=True)
                yield from append(writer, place.step, index, result, now)


def role(message: Message) -> str:
    match message:
        case UserMessage():
            return "user"
        case AssistantMessage():
            return "assistant"
        case ToolMessage():
            return "tool"


class Entry(Value):
    """A message of an export."""

    at: float
    generation: int
    turn: str
    message: Message


def entries(session: str) -> Work[list[Entry]]:
    """Returns all messages of the session in order, without summaries.

    A marker replaces a message that can't be read.
    """
    rows = yield (
        f"select {MESSAGE_COLUMNS}, at, generation from messages"  # noqa: S608
        " where session = ? and transient = 0 order by id",
        (session,),
    )
    rows = yield from bodies.filled(rows, BODY, BODY_NAME)
    return [
        Entry(at=row[8], generation=row[9], turn=row[1], message=message)
        for row, message in marked(decoded(_in_order(rows)))
    ]
