"""The messages that show open questions. When a question is closed, its message is edited: the
message then says what was decided, and its buttons are gone."""

from msgspec.structs import replace

from hermes.state import session_lock
from hermes.state.codec import decode_content, decode_placed, encode
from hermes.text.markdown import literal
from hermes.text.quote import shorten
from hermes.types.approvals import GRANT_LABELS, Grant
from hermes.types.delivery import Delivery
from hermes.types.identity import OWNER, new_id
from hermes.types.messages import Choices
from hermes.types.store import Row, Work

_GRANTED: dict[Grant, str] = {
    "once": "once",
    "session": "for this conversation",
    "always": "always",
}
_APPROVED = {GRANT_LABELS[grant]: words for grant, words in _GRANTED.items()}
_ANSWER_LENGTH = 100


def note_shown(delivery: Delivery, now: float) -> Work[None]:
    """Records which open questions this delivery shows, so that the messages of the delivery can be
    edited later. If a question was closed while the delivery was being sent, the messages are
    edited at once."""
    closed = False
    for one in delivery.content.choices:
        if not one.outcome:
            closed |= yield from _note(one.question, delivery.id)
    if closed:
        yield from show_outcomes(delivery.id, now)


def _note(question: str, delivery: str) -> Work[bool]:
    """Records that the delivery shows the question. Returns whether the question is closed."""
    rows = yield "select session from questions where id = ?", (question,)
    if not rows:
        return False
    yield from session_lock.lock(rows[0][0])
    rows = yield (
        "update questions set shown_in = ? where id = ? returning state",
        (delivery, question),
    )
    return any(state != "open" for (state,) in rows)


def show_outcomes(delivery: str | None, now: float) -> Work[None]:
    """Adds a delivery that edits the messages with the questions, so that they show the outcomes of
    the closed questions. `delivery` is the id of the delivery that sent these messages. Does
    nothing if `delivery` is None or was not sent."""
    rows = yield (
        "select content, placed from deliveries where id = ? and state = 'delivered'",
        (delivery,),
    )
    if not rows:
        return
    content, placed = decode_content(rows[0][0]), decode_placed(rows[0][1])
    choices = []
    for one in content.choices:
        choices.append((yield from _with_outcome(one)))
    # If the platform refuses the edit, for example because a person has deleted the message, the
    # refusal must be ignored. Otherwise the message would be sent again. Refused edits are ignored
    # only for doubtful deliveries, so the new delivery is marked as doubtful.
    yield (
        "insert into deliveries (id, turn, agent, account, chat_id, thread_id, state, content,"
        " placed, doubtful, created_at) select ?, turn, agent, account, chat_id, thread_id,"
        " 'ready', ?, ?, 1, ? from deliveries where id = ?",
        (
            new_id(),
            encode(replace(content, choices=tuple(choices))),
            encode(tuple(replace(one, final=False) for one in placed)),
            now,
            delivery,
        ),
    )
    yield (
        "update questions set shown_in = null where shown_in = ? and state <> 'open'",
        (delivery,),
    )


def _with_outcome(choices: Choices) -> Work[Choices]:
    """Returns the question as it is shown now, with its outcome if it is closed."""
    if choices.outcome:
        return choices
    rows = yield (
        "select state, answer, decided_by, decided_name from questions where id = ?",
        (choices.question,),
    )
    outcome = _outcome(rows[0]) if rows else ""
    if not outcome:
        return choices
    text = f"{choices.prompt}\n\n{outcome}"
    return replace(choices, prompt=text, text=text, hint="", outcome=outcome)


def _outcome(row: Row) -> str:
    """Returns a sentence in Markdown about the outcome of a question; empty if the question is
    open."""
    state, answer, decided_by, name = row
    who = "the owner" if decided_by == OWNER and not name else literal(name or decided_by or "")
    match state:
        case "open":
            return ""
        case "approved":
            return f"Approved {_APPROVED.get(answer, '')} by {who}."
        case "denied":
            return f"Denied by {who}."
        case "answered":
            return f"Answered by {who}: {literal(shorten(answer or '', _ANSWER_LENGTH))}"
        case "expired":
            return "No longer open: nobody has decided in time."
        case _:
            return "No longer open: the turn has ended."
