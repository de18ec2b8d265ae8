"""Open approvals, and the actions that were approved for longer than one call."""

from hermes.state import session_lock
from hermes.state.codec import decode_choices
from hermes.state.questions import BRIEF_LENGTH
from hermes.text.quote import shorten
from hermes.types.approvals import short_id
from hermes.types.identity import AgentId, PersonId, SessionKey, Source, TurnId, new_id
from hermes.types.store import Row, Work
from hermes.types.value import Value


class OpenApproval(Value):
    """An approval that waits for a decision."""

    id: str
    turn: TurnId
    session: str
    agent: AgentId
    person: PersonId
    """The person for whom the agent works."""
    detail: str
    """The exact action that the approval would permit."""
    choices: tuple[str, ...]
    digest: str
    lasting_digest: str
    asked_at: float
    expires_at: float

    @property
    def short_id(self) -> str:
        return short_id(self.id)

    @property
    def brief(self) -> str:
        """The action in one line."""
        return shorten(self.detail, BRIEF_LENGTH)


class ApprovalRule(Value):
    """An action that a person has approved, either for one conversation or for all their
    conversations."""

    id: str
    agent: AgentId
    person: PersonId
    session: str | None
    """The conversation in which the rule applies; None for all conversations of the person."""
    detail: str
    granted_by: str
    granted_at: float


_COLUMNS = (
    "q.id, q.turn, q.session, q.agent, q.person, q.detail, q.choices, q.digest, q.lasting_digest,"
    " q.asked_at, q.expires_at"
)
_OPEN = "q.state = 'open' and q.kind = 'approval'"


def _approval(row: Row) -> OpenApproval:
    named = dict(zip(OpenApproval.__struct_fields__, row, strict=True))
    return OpenApproval(
        **{**named, "choices": decode_choices(row[6]), "person": PersonId(row[4] or "")}
    )


def all_open() -> Work[list[OpenApproval]]:
    rows = yield f"select {_COLUMNS} from questions q where {_OPEN} order by q.id", ()  # noqa: S608
    return [_approval(row) for row in rows]


def asked_of(person: PersonId, agent: AgentId) -> Work[list[OpenApproval]]:
    """Returns the open approvals that the agent asks a person for, in all conversations."""
    rows = yield (
        f"select {_COLUMNS} from questions q where {_OPEN} and q.person = ? and q.agent = ?"  # noqa: S608
        " order by q.id",
        (person, agent),
    )
    return [_approval(row) for row in rows]


def asked_in(person: PersonId, key: SessionKey, source: Source) -> Work[list[OpenApproval]]:
    """Returns the open approvals of a person that were shown in this conversation. This includes
    approvals of background work, which has a session of its own but shows its questions in the
    chat. Approvals whose message still waits in the outbox are left out, because they were not
    shown yet."""
    rows = yield (
        f"select {_COLUMNS} from questions q where {_OPEN} and q.person = ? and q.agent = ?"  # noqa: S608
        " and (q.session = ? or exists (select 1 from deliveries d where d.turn = q.turn"
        " and d.account = ? and d.chat_id = ? and coalesce(d.thread_id, '') = ?))"
        " and not exists (select 1 from deliveries d where d.turn = q.turn"
        " and d.state in ('open', 'ready') and d.attempts = 0 and d.doubtful = 0) order by q.id",
        (person, key.agent, str(key), source.account, source.chat_id, source.thread_id or ""),
    )
    return [_approval(row) for row in rows]


def of_turn(turn: TurnId) -> Work[list[OpenApproval]]:
    rows = yield (
        f"select {_COLUMNS} from questions q where {_OPEN} and q.turn = ? order by q.id",  # noqa: S608
        (turn,),
    )
    return [_approval(row) for row in rows]


def find(id: str) -> Work[OpenApproval | None]:
    rows = yield f"select {_COLUMNS} from questions q where {_OPEN} and q.id = ?", (id,)  # noqa: S608
    return _approval(rows[0]) if rows else None


def grant(
    approval: OpenApproval, digest: str, session: str | None, who: str, now: float
) -> Work[None]:
    """Stores a rule, so that the same action needs no further approval."""
    yield (
        "insert into approval_rules (id, agent, person, session, digest, detail, granted_by,"
        " granted_at) values (?, ?, ?, ?, ?, ?, ?, ?)"
        " on conflict (agent, person, digest) do nothing",
        (
            new_id(),
            approval.agent,
            approval.person,
            session,
            digest,
            approval.detail,
            who,
            now,
        ),
    )


def is_granted(agent: AgentId, person: PersonId, digest: str, lasting_digest: str) -> Work[bool]:
    """Returns whether this person has a rule that permits the action with one of these digests."""
    rows = yield (
        "select 1 from approval_rules where agent = ? and person = ? and digest in (?, ?) limit 1",
        (agent, person, digest, lasting_digest),
    )
    return bool(rows)


def rules() -> Work[list[ApprovalRule]]:
    rows = yield (
        "select id, agent, person, session, detail, granted_by, granted_at from approval_rules"
        " order by id",
        (),
    )
    names = ApprovalRule.__struct_fields__
    return [ApprovalRule(**dict(zip(names, row, strict=True))) for row in rows]


def revoke(id: str) -> Work[bool]:
    """Deletes a rule. Returns False if there is no such rule."""
    rows = yield "delete from approval_rules where id = ? returning id", (id,)
    return bool(rows)


def end_session(session: str) -> Work[None]:
    """Deletes the approvals that a person has given for the whole conversation, which has ended."""
    yield "delete from approval_rules where session = ?", (session,)


def mark_undelivered(condition: str, *parameters: str | int) -> Work[bool]:
    """Closes the open questions whose messages (deliveries) meet this SQL condition, because nobody
    will see them. Returns whether there were such questions."""
    rows = yield (
        "select id, session from questions where state = 'open' and kind <> 'client_call'"  # noqa: S608
        " and shown_in is null"
        f" and turn in (select turn from deliveries where {condition})",
        parameters,
    )
    for id, session in rows:
        yield from session_lock.lock(session)
        yield "update questions set state = 'undelivered' where id = ? and state = 'open'", (id,)
    return bool(rows)
