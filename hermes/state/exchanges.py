"""The exchanges of a conversation. An exchange is a message of a person, together with everything
that the answering turn has added."""

from hermes.state import bodies, compactions
from hermes.state.codec import decode_message
from hermes.state.compactions import Condensed
from hermes.state.transcript import QUESTION_STEP
from hermes.types.messages import UserMessage
from hermes.types.store import Work
from hermes.types.value import Value


class PastExchange(Value):
    """One exchange in a session's current conversation: messages of a person, and the answer to
    them."""

    turn: str
    first: int
    """The number of the first row of the exchange."""


def last_exchanges(session: str, generation: int, count: int) -> Work[list[PastExchange]]:
    """Returns the newest exchanges of the conversation, the newest first. Exchanges that were
    summarised or removed are left out."""
    hidden = yield from compactions.active(session, generation)
    after = max((one.span[1] for one in hidden if one.summary is not None), default=0)
    removed = [one.span for one in hidden if one.summary is None]
    left_out = "".join(" and not (id between ? and ?)" for _ in removed)
    rows = yield (
        "select turn, min(id) from messages where session = ? and generation = ?"  # noqa: S608
        f" and transient = 0 and role = 'user' and step = ? and id > ?{left_out}"
        " group by turn order by min(id) desc limit ?",
        (
            session,
            generation,
            QUESTION_STEP,
            after,
            *(row for one in removed for row in one),
            count,
        ),
    )
    return [PastExchange(turn=turn, first=first) for turn, first in rows]


def questions_of(exchange: PastExchange) -> Work[list[UserMessage]]:
    """Returns the messages of the person in the exchange. Raises DecodeError if one of the messages
    can't be read."""
    rows = yield (
        "select body, crc, body_name from messages where turn = ? and role = 'user'"
        " order by step, idx",
        (exchange.turn,),
    )
    whole = yield from bodies.filled(rows, 0, 2)
    found = [decode_message(body, crc) for body, crc, _ in whole]
    return [message for message in found if isinstance(message, UserMessage)]


def remove_from(exchange: PastExchange, session: str, generation: int, now: float) -> Work[None]:
    """Removes the exchange and everything after it from the conversation."""
    rows = yield (
        "select max(id) from messages where session = ? and generation = ? and transient = 0",
        (session, generation),
    )
    span = (exchange.first, rows[0][0])
    what = Condensed(session=session, generation=generation, span=span)
    yield from compactions.hide(what, now)
