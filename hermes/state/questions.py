"""Questions that turns wait for: approvals and other questions to people, and open calls of client
tools."""

from collections.abc import Sequence

from hermes.state.codec import decode_choices, encode
from hermes.state.shown_questions import show_outcomes
from hermes.state.storable import storable
from hermes.state.turns import TurnRow
from hermes.text.quote import shorten
from hermes.types.identity import CallId, SessionKey, TurnId
from hermes.types.messages import ToolCall
from hermes.types.store import Work
from hermes.types.turns import (
    Answered,
    Approved,
    Cancelled,
    Decision,
    Denied,
    Expired,
    Question,
    Undelivered,
)
from hermes.types.value import Value

BRIEF_LENGTH = 100
"""Maximum number of characters of a question in a list."""
CLIENT_CALL = "client_call"
"""The kind of an open call of a client tool. Only the client can answer it."""


class OpenQuestion(Value):
    id: str
    turn: TurnId
    kind: str
    prompt: str
    choices: tuple[str, ...]
    detail: str

    @property
    def brief(self) -> str:
        """The question in one line."""
        return shorten(self.detail or self.prompt, BRIEF_LENGTH)


def ask_all(
    turn: TurnRow,
    ids: Sequence[str],
    asked: Sequence[Question],
    calls: Sequence[ToolCall],
    expires_at: float,
    now: float,
) -> Work[None]:
    """Stores everything that a suspended turn waits for: the questions `asked` with their `ids`,
    and calls of client tools. These calls expire at `expires_at`."""
    agent = SessionKey.parse(turn.session).agent
    for id, question in zip(ids, asked, strict=True):
        yield from ask(id, turn, agent, question, now)
    for call in calls:
        yield from await_client(call.id, turn, agent, expires_at, now)


def ask(id: str, turn: TurnRow, agent: str, question: Question, now: float) -> Work[None]:
    """Stores the question. The tool call that asks the question then counts as not started, so that
    it is run again from its beginning after the decision."""
    yield "delete from calls where id = ?", (question.call,)
    yield (
        "insert into questions (id, turn, call, session, agent, person, kind, prompt, choices,"
        " digest, state, asked_at, expires_at, detail, lasting_digest)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?)",
        (
            id,
            turn.id,
            question.call,
            turn.session,
            agent,
            turn.person,
            question.kind,
            storable(question.prompt),
            encode(question.choices),
            question.digest,
            now,
            now + question.expires_in,
            storable(question.detail),
            question.lasting_digest,
        ),
    )


def open_questions(turn: TurnId) -> Work[list[OpenQuestion]]:
    rows = yield (
        "select id, turn, kind, prompt, choices, detail from questions"
        " where turn = ? and state = 'open' and kind <> ? order by asked_at, id",
        (turn, CLIENT_CALL),
    )
    return [
        OpenQuestion(
            id=id,
            turn=TurnId(turn),
            kind=kind,
            prompt=prompt,
            choices=decode_choices(choices),
            detail=detail,
        )
        for id, turn, kind, prompt, choices, detail in rows
    ]


def has_open_question(turn: TurnId) -> Work[bool]:
    """Returns whether the turn waits for a person or for a client."""
    rows = yield "select 1 from questions where turn = ? and state = 'open' limit 1", (turn,)
    return bool(rows)


def await_client(
    call: CallId, turn: TurnRow, agent: str, expires_at: float, now: float
) -> Work[None]:
    """Lets a suspended turn wait for the result of a client tool: a tool that an API client offers
    and runs itself."""
    yield (
        "insert into questions (id, turn, call, session, agent, person, kind, prompt, choices,"
        " digest, state, asked_at, expires_at)"
        " values (?, ?, ?, ?, ?, ?, ?, '', ?, '', 'open', ?, ?)",
        (
            call,
            turn.id,
            call,
            turn.session,
            agent,
            turn.person,
            CLIENT_CALL,
            encode(()),
            now,
            expires_at,
        ),
    )


def open_client_calls(turn: TurnId) -> Work[list[CallId]]:
    """Returns the calls of client tools that the turn waits for."""
    rows = yield (
        "select call from questions where turn = ? and state = 'open' and kind = ? order by call",
        (turn, CLIENT_CALL),
    )
    return [CallId(row[0]) for row in rows]


def close_client_calls(turn: TurnId, now: float) -> Work[None]:
    """Closes the turn's open calls of client tools. Call this when the transcript contains the
    results of all these calls."""
    yield (
        "update questions set state = 'answered', decided_at = ?"
        " where turn = ? and state = 'open' and kind = ?",
        (now, turn, CLIENT_CALL),
    )


def decide(
    question: str, state: str, answer: str | None, who: str, now: float, name: str | None = None
) -> Work[TurnId | None]:
    """Closes a question. `who` is the id of the person who decided, and `name` is the person's
    name; `who` is empty if the question has expired. If a message shows the question, also adds a
    delivery that edits this message. Returns the question's turn; None if the question was already
    closed."""
    rows = yield (
        "update questions set state = ?, answer = ?, decided_by = ?, decided_at = ?,"
        " decided_name = ? where id = ? and state = 'open' returning turn, shown_in",
        (state, answer, who, now, None if name is None else storable(name), question),
    )
    for _, shown_in in rows:
        yield from show_outcomes(shown_in, now)
    return TurnId(rows[0][0]) if rows else None


def overdue_questions(now: float) -> Work[list[str]]:
    rows = yield "select id from questions where state = 'open' and expires_at <= ?", (now,)
    return [row[0] for row in rows]


def decisions(turn: TurnId) -> Work[dict[CallId, Decision]]:
    rows = yield "select call, state, answer, digest from questions where turn = ?", (turn,)
    found: dict[CallId, Decision] = {}
    for call, state, answer, digest in rows:
        match state:
            case "approved":
                found[call] = Approved(digest=digest)
            case "denied":
                found[call] = Denied(reason=answer or "")
            case "expired":
                found[call] = Expired()
            case "undelivered":
                found[call] = Undelivered()
            case "cancelled":
                found[call] = Cancelled()
            case "answered":
                found[call] = Answered(text=answer or "")
    return found
