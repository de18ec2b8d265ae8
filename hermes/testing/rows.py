"""Small rows and transactions for tests of the store."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TypeVar

import anyio

from hermes.state import owners, questions, transcript, turns
from hermes.state.audience import Operator
from hermes.state.codec import Recorded
from hermes.state.transcript import History, TranscriptWriter
from hermes.state.turns import TurnRow
from hermes.types.events import AgentEvent, TextDelta
from hermes.types.identity import (
    AgentId,
    CallId,
    OwnerId,
    SessionKey,
    Source,
    Target,
    TurnId,
)
from hermes.types.messages import (
    Message,
    MessageEvent,
    Origin,
    Said,
    UserMessage,
)
from hermes.types.store import Store, Work
from hermes.types.turns import Question

T = TypeVar("T")

NOW = 1_700_000_000.0
EVERYBODY = Operator(agent=AgentId("main"))
US, THEM = OwnerId("us"), OwnerId("them")
CHAT = Target(account="telegram", chat_id="7")
SOURCE = Source(
    platform="telegram", account="telegram", chat_kind="private", chat_id="7", user_id="42"
)


async def outcomes_of(
    store: Store, transactions: Sequence[Callable[[], Work[T]]]
) -> list[T | Exception]:
    """Runs all transactions at the same time. Returns the result or the error of each, in the order
    of `transactions`."""
    outcomes: dict[int, T | Exception] = {}

    async def one(number: int, transaction: Callable[[], Work[T]]) -> None:
        try:
            outcomes[number] = await store.run(transaction)
        except Exception as error:  # noqa: BLE001  # what is asked for
            outcomes[number] = error

    async with anyio.create_task_group() as group:
        for number, transaction in enumerate(transactions):
            group.start_soon(one, number, transaction)
    return [outcomes[number] for number in range(len(transactions))]


def put(name: str) -> Work[None]:
    """Writes a small row with this name. The row is a lease without a holder."""
    yield "insert into leases (name, owner, epoch, taken_at) values (?, ?, 0, ?)", (name, "", NOW)


def add(name: str) -> Work[int]:
    rows = yield "update leases set epoch = epoch + 1 where name = ? returning epoch", (name,)
    count: int = rows[0][0]
    return count


def value(name: str) -> Work[int | None]:
    rows = yield "select epoch from leases where name = ?", (name,)
    return rows[0][0] if rows else None


def names() -> Work[list[str]]:
    rows = yield "select name from leases order by name", ()
    return [row[0] for row in rows]


def said(key: str, fingerprint: str = "") -> MessageEvent:
    return MessageEvent(
        dedupe_key=key,
        source=SOURCE,
        origin=Origin(reply_to=CHAT),
        received_at=NOW,
        body=Said(text="hi"),
        fingerprint=fingerprint,
    )


def session(chat: str = "7", agent: str = "main") -> SessionKey:
    return SessionKey(agent=AgentId(agent), platform="telegram", kind="private", chat=chat)


def turn_row(id: str, key: str | None = None, state: str = "running") -> TurnRow:
    return TurnRow(
        id=TurnId(id),
        session=key or str(session()),
        person=None,
        account="telegram",
        state=state,
        owner=US,
        epoch=1,
        trigger="api",
        transient=False,
        generation=0,
        steps=0,
        seq=0,
        shown=0,
        stop_requested=None,
        reason=None,
        code=None,
        started_at=NOW,
    )


def writer(
    turn: str, agent: str = "main", *, generation: int = 0, transient: bool = False
) -> TranscriptWriter:
    return TranscriptWriter(
        turn=turn,
        session=session(agent=agent),
        generation=generation,
        transient=transient,
        account="telegram",
        person=None,
    )


def ask(id: str, call: str, kind: str = "approval", choices: tuple[str, ...] = ()) -> Work[None]:
    question = Question(
        call=CallId(call),
        kind="question" if kind == "question" else "approval",
        prompt="Really?",
        choices=choices,
        digest="d",
        expires_in=100.0,
    )
    return questions.ask(id, turn_row("t"), "main", question, NOW)


async def hold_account(store: Store) -> tuple[OwnerId, int]:
    epoch = await store.run(owners.claim_lease, f"account:{CHAT.account}", US, set(), NOW)
    assert epoch is not None
    return US, epoch


class FutureMessage(UserMessage, tag_field="role", tag="from a newer version"):
    """A message that the store accepts but this version can't read."""


def append_unreadable(row: TurnRow, step: int) -> Work[int]:
    """Adds an unreadable message to the turn, as if a newer version had written it."""
    writer = TranscriptWriter(
        turn=row.id,
        session=SessionKey.parse(row.session),
        generation=row.generation,
        transient=row.transient,
        account=row.account,
        person=row.person,
    )
    return transcript.append(writer, step, 0, FutureMessage(text="unreadable"), NOW)


def make_unreadable(id: str) -> Work[None]:
    """Replaces a message in the inbox by a message that this version can't read."""
    yield "update inbox set event = ? where id = ?", (b'{"body": "of a newer version"}', id)


def cuts(length: int) -> Iterator[tuple[int, ...]]:
    """Yields every way to cut a list of this length into pieces."""
    for count in range(length):
        yield from combinations(range(1, length), count)


def merged(events: Sequence[AgentEvent]) -> list[AgentEvent]:
    """Joins consecutive pieces of text into one event, and drops empty pieces."""
    found: list[AgentEvent] = []
    for event in events:
        if isinstance(event, TextDelta) and found and isinstance(found[-1], TextDelta):
            found[-1] = TextDelta(text=found[-1].text + event.text)
        else:
            found.append(event)
    return [event for event in found if event != TextDelta(text="")]


def said_in(key: str, generation: int) -> Work[list[Message]]:
    """Returns all messages of one conversation. The conversations of a session are numbered by
    `generation`."""
    found = yield from transcript.history(key, History(generation=generation))
    return list(found.messages)


async def stored_events(store: Store, turn: TurnId, after: int) -> list[Recorded]:
    """Returns all stored events of a turn whose numbers are higher than `after`."""
    found: list[Recorded] = []
    more = True
    while more:
        page = await store.read(turns.events_page, turn, after)
        found += page.recorded
        more, after = page.more, found[-1].seq if found else after
    return found
