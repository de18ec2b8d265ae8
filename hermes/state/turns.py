"""Turns, and the claims of the processes that run them. Each claim on a turn has a number, the
epoch. A process that writes to a turn states the epoch of its claim. The write fails if another
process has claimed the turn since."""

from collections.abc import Collection, Iterator

from hermes.state.codec import Recorded, decode_recorded, encode
from hermes.state.shown_questions import show_outcomes
from hermes.state.storable import storable
from hermes.types.errors import ClaimLost
from hermes.types.events import NO_USAGE, UsageReported
from hermes.types.identity import AgentId, CallId, FolderId, OwnerId, PersonId, TurnId
from hermes.types.store import Row, Work
from hermes.types.value import Value

EVENTS_PER_CLAIM = 1_000_000
"""Each claim on a turn reserves this number of event numbers. So the events of the next claim
always get higher numbers."""
ROW_BYTES = 16_384
"""Maximum size of a row of stored events, in bytes. Only a row with a single event may be
larger."""
PAGE_BYTES = 8_192
"""Size in bytes of a page of stored events. A page ends with the row that reaches this size."""


class TurnRow(Value):
    """The row of a turn."""

    id: TurnId
    session: str
    person: PersonId | None
    account: str
    state: str
    owner: OwnerId | None
    epoch: int
    trigger: str
    transient: bool
    generation: int
    steps: int
    seq: int
    shown: int
    """Number of steps whose text was already shown to a person."""
    stop_requested: str | None
    reason: str | None
    code: str | None
    started_at: float
    workspace: str | None = None
    """The folder in which the turn works, also after another process has resumed it."""
    request: str | None = None
    """The id of the message whose options apply to the turn; None if it is the message that opened
    the turn."""
    folder: FolderId | None = None
    """The folder with the files that the turn needs; None if the turn can run on any node."""


_COLUMNS = (
    "id, session, person, account, state, owner, epoch, trigger_kind, transient, generation,"
    " steps, seq, shown, stop_requested, reason, code, started_at, workspace, request, folder"
)


_OPEN = "state in ('running', 'suspended')"
"""The condition of the index `one_open_turn`. The text must be the same as in the index, so that
SQLite uses the index. The index is small, because few turns are open."""


def _row(row: Row) -> TurnRow:
    names = TurnRow.__struct_fields__
    return TurnRow(**{**dict(zip(names, row, strict=True)), "transient": bool(row[8])})


def insert(turn: TurnRow, agent: str, chat_id: str) -> Work[None]:
    """Inserts a new turn, which has no steps and no events."""
    yield (
        "insert into turns (id, session, person, account, state, owner, epoch, trigger_kind,"
        " transient, generation, started_at, workspace, folder, agent, chat_id)"
        " values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            turn.id,
            turn.session,
            turn.person,
            turn.account,
            turn.state,
            turn.owner,
            turn.epoch,
            turn.trigger,
            int(turn.transient),
            turn.generation,
            turn.started_at,
            turn.workspace,
            turn.folder,
            agent,
            chat_id,
        ),
    )


def get(turn: str) -> Work[TurnRow | None]:
    rows = yield f"select {_COLUMNS} from turns where id = ?", (turn,)  # noqa: S608
    return _row(rows[0]) if rows else None


def open_in(session: str) -> Work[TurnRow | None]:
    """Returns the session's running or suspended turn; None if it has no such turn."""
    rows = yield (
        f"select {_COLUMNS} from turns"  # noqa: S608
        " where session = ? and state in ('running', 'suspended')",
        (session,),
    )
    return _row(rows[0]) if rows else None


def open_turns(condition: str, *parameters: str | None) -> Work[list[TurnRow]]:
    """Returns the open turns that meet an SQL condition, in which `t` is the table of turns."""
    rows = yield (
        f"select {_COLUMNS} from turns t where {_OPEN} and {condition}",  # noqa: S608
        parameters,
    )
    return [_row(row) for row in rows]


def all_open() -> Work[list[TurnRow]]:
    return open_turns("true")


def running_of(owner: OwnerId) -> Work[list[TurnRow]]:
    return open_turns("state = 'running' and owner = ?", owner)


def hold(turn: TurnId, epoch: int) -> Work[None]:
    """Raises ClaimLost if the claim with this number is no longer valid."""
    rows = yield (
        "select 1 from turns where id = ? and epoch = ? and state = 'running'",
        (turn, epoch),
    )
    if not rows:
        raise ClaimLost(f"turn {turn} was taken over or closed by another process")


_TOKENS = (
    "prompt_tokens = coalesce(prompt_tokens, 0) + ?,"
    " completion_tokens = coalesce(completion_tokens, 0) + ?,"
    " cached_tokens = coalesce(cached_tokens, 0) + ?"
)
_PRICED_TOKENS = f"{_TOKENS}, cost = coalesce(cost, 0) + ?"


def _used(usage: UsageReported) -> tuple[str, tuple[int | float, ...]]:
    """Returns the SQL that adds the usage to a turn, and its parameters."""
    tokens = (usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
    return (_TOKENS, tokens) if usage.cost is None else (_PRICED_TOKENS, (*tokens, usage.cost))


def advance(
    turn: TurnId, epoch: int, steps: int, seq: int, usage: UsageReported = NO_USAGE
) -> Work[None]:
    """Records a checkpoint: the number of model calls, the last stored event, and the usage since
    the previous checkpoint."""
    used, amounts = _used(usage)
    rows = yield (
        f"update turns set steps = ?, seq = ?, {used}"  # noqa: S608
        " where id = ? and epoch = ? and state = 'running' returning id",
        (steps, seq, *amounts, turn, epoch),
    )
    if not rows:
        raise ClaimLost(f"turn {turn} was taken over or closed by another process")


def claim(turn: TurnId, epoch: int, owner: OwnerId) -> Work[int]:
    """Claims the turn for the process with the id `owner`, and marks the turn as running. `epoch`
    is the number of the present claim. Returns the number of the new claim."""
    rows = yield (
        "update turns set owner = ?, epoch = epoch + 1, state = 'running'"
        " where id = ? and epoch = ? and state in ('running', 'suspended') returning epoch",
        (owner, turn, epoch),
    )
    if not rows:
        raise ClaimLost(f"turn {turn} was taken over by another process")
    claimed: int = rows[0][0]
    return claimed


def close(
    turn: TurnId,
    epoch: int,
    state: str,
    now: float,
    usage: UsageReported = NO_USAGE,
    reason: tuple[str, str] = ("", ""),
    *,
    temporary: bool = False,
) -> Work[None]:
    """Ends the work of this process on the turn, and stores the new state of the turn. If the turn
    did not complete, `reason` is a pair: the reason in words, and its code. If the turn was stopped
    or has failed, its open questions are cancelled."""
    used, amounts = _used(usage)
    rows = yield (
        f"update turns set state = ?, finished_at = ?, shown = steps, {used},"  # noqa: S608
        " reason = ?, code = ?, temporary = ?"
        " where id = ? and epoch = ? and state = 'running' returning id",
        (
            state,
            None if state == "suspended" else now,
            *amounts,
            *map(storable, reason),
            int(temporary),
            turn,
            epoch,
        ),
    )
    if not rows:
        raise ClaimLost(f"turn {turn} was taken over or closed by another process")
    if state in ("stopped", "failed"):
        cancelled = yield (
            "update questions set state = 'cancelled', decided_at = ?"
            " where turn = ? and state = 'open' and kind <> 'client_call' returning shown_in",
            (now, turn),
        )
        for delivery in sorted({row[0] for row in cancelled if row[0]}):
            yield from show_outcomes(delivery, now)


def set_request(turn: TurnId, request: str) -> Work[None]:
    """Makes the options of this message apply to the turn."""
    yield "update turns set request = ? where id = ?", (request, turn)


def failed_temporarily(turn: str) -> Work[TurnRow | None]:
    """Returns the turn if it failed for a temporary reason; None otherwise."""
    rows = yield (
        f"select {_COLUMNS} from turns"  # noqa: S608
        " where id = ? and state = 'failed' and temporary = 1",
        (turn,),
    )
    return _row(rows[0]) if rows else None


def reopen(turn: TurnRow) -> Work[None]:
    """Reopens a failed turn at its last checkpoint. The turn then waits until a process claims
    it."""
    rows = yield (
        "update turns set state = 'suspended', finished_at = null, stop_requested = null,"
        " reason = null, code = null, temporary = 0"
        " where id = ? and epoch = ? and state = 'failed' returning id",
        (turn.id, turn.epoch),
    )
    if not rows:
        raise ClaimLost(f"turn {turn.id} was taken over by another process")
    # Clients may have received the events of earlier claims as answers to earlier requests. So only
    # the events of the last claim are deleted.
    last = max(turn.seq, turn.epoch * EVENTS_PER_CLAIM)
    yield "delete from run_events where turn = ? and first_seq > ?", (turn.id, last)


def request_stop(turn: TurnId, who: str) -> Work[None]:
    yield "update turns set stop_requested = ? where id = ?", (who, turn)


def start_call(call: CallId, turn: TurnId, handle: str | None, now: float) -> Work[None]:
    yield (
        "insert into calls (id, turn, handle, started_at) values (?, ?, ?, ?)"
        " on conflict (id) do update set handle = excluded.handle",
        (call, turn, handle, now),
    )


def started_calls(turn: TurnId) -> Work[dict[CallId, str | None]]:
    """Returns the turn's calls that were marked as started. Each call id maps to the handle of the
    command that the call has started, or to None."""
    rows = yield "select id, handle from calls where turn = ?", (turn,)
    return {CallId(id): handle for id, handle in rows}


DECIDED = (
    "state = 'suspended' and (stop_requested is not null or not exists"
    " (select 1 from questions q where q.turn = t.id and q.state = 'open'))"
)
"""The SQL condition for a suspended turn that can be resumed, because it was stopped or has no open
question any more."""


def suspended_to_resume(owner: OwnerId) -> Work[list[TurnRow]]:
    """Returns the suspended turns that one process must resume: stopped turns, and turns without an
    open question. `owner` is the id of the process."""
    return open_turns(f"owner = ? and {DECIDED}", owner)


def adopt_suspended(
    dead: list[OwnerId],
    owner: OwnerId,
    agents: Collection[AgentId],
    folder: FolderId | None = None,
) -> Work[None]:
    """Gives the suspended turns of the `dead` processes to the process with the id `owner`. Only
    turns of these agents are taken over. Turns that need a folder other than `folder` are not taken
    over."""
    marks = ", ".join("?" for _ in agents)
    for gone in dead:
        yield (
            "update turns set owner = ? where owner = ? and state = 'suspended'"  # noqa: S608
            " and (folder is null or coalesce(?, folder) = folder)"
            f" and agent in ({marks})",
            (owner, gone, folder, *agents),
        )


def open_agents(owner: OwnerId) -> Work[set[AgentId]]:
    """Returns the agents of the open turns that the process `owner` runs."""
    rows = yield f"select distinct agent from turns where {_OPEN} and owner = ?", (owner,)  # noqa: S608
    return {AgentId(row[0]) for row in rows}


class EventPage(Value):
    """A page of the stored events of a turn."""

    recorded: list[Recorded]
    more: bool
    """Whether there are stored events after this page."""


def keep_events(turn: TurnId, first: int, recorded: list[Recorded]) -> Work[None]:
    """Stores events in rows that can be decoded separately."""
    for last, body in _event_rows(recorded):
        yield (
            "insert into run_events (turn, first_seq, last_seq, body) values (?, ?, ?, ?)"
            " on conflict do nothing",
            (turn, first, last, body),
        )
        first = last + 1


def _event_rows(recorded: list[Recorded]) -> Iterator[tuple[int, bytes]]:
    """Yields two values for each row to store: the number of the last event in the row, and the
    body of the row."""
    row: list[bytes] = []
    size = last = 0
    for one in recorded:
        encoded = encode(one)
        if row and size + len(encoded) > ROW_BYTES:
            yield last, b"[%b]" % b",".join(row)
            row, size = [], 0
        row.append(encoded)
        size += len(encoded)
        last = one.seq
    if row:
        yield last, b"[%b]" % b",".join(row)


def events_page(turn: TurnId, after: int) -> Work[EventPage]:
    """Returns the first page of the stored events with numbers above `after`. Because events are
    stored in groups, the page can begin with events, or parts of an event, that the reader has
    already seen."""
    recorded: list[Recorded] = []
    size = 0
    while size < PAGE_BYTES:
        rows = yield (
            "select last_seq, body from run_events where turn = ? and last_seq > ?"
            " and first_seq >= coalesce((select max(first_seq) from run_events"
            " where turn = ? and first_seq <= ?), 0) order by first_seq limit 1",
            (turn, after, turn, after),
        )
        if not rows:
            return EventPage(recorded=recorded, more=False)
        ((after, body),) = rows
        recorded += decode_recorded(body)
        size += len(body)
    later = yield (
        "select 1 from run_events where turn = ? and first_seq > ? limit 1",
        (turn, after),
    )
    return EventPage(recorded=recorded, more=bool(later))
