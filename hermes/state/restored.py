"""Closes the work that is open in a snapshot, when the snapshot replaces the database.

After the snapshot was taken, an open turn may have been completed, and a pending delivery may have
been sent. Therefore open turns are not run again, and pending deliveries count as doubtful.
"""

from contextlib import suppress

import msgspec

from hermes.state import deliveries, inbox, transcript, turns
from hermes.state.codec import record
from hermes.state.inbox import Waiting
from hermes.state.transcript import TranscriptWriter
from hermes.state.turns import EVENTS_PER_CLAIM, TurnRow
from hermes.types.events import TurnFinished
from hermes.types.identity import OwnerId, SessionKey, TurnId
from hermes.types.messages import Content
from hermes.types.store import Work
from hermes.types.value import Value

RESTORED = "restored"
"""The code of a turn that failed because a snapshot was restored."""
NOTICE = (
    "My records were restored from a snapshot that is {age} old, so I can't tell how far I was with"
    " your message. Please send it again if you still need an answer."
)


class RestoredWork(Value):
    """The open work that was found in the snapshot."""

    turns: int
    waiting: int
    """Number of messages that waited, because no turn had taken them yet."""
    deliveries: int


def close_open_work(age: str, now: float) -> Work[RestoredWork]:
    """Ends the open turns and the waiting messages as failed. The people who wrote the messages get
    a notice instead of an answer. Marks the pending deliveries as doubtful, because they may have
    been sent after the snapshot was made.

    `age` is the age of the snapshot in words.
    """
    notice = NOTICE.format(age=age)
    owed = yield from deliveries.doubt_owed()
    open_turns = yield from turns.all_open()
    for row in open_turns:
        yield from _fail(row, notice, now)
    pending = yield from inbox.all_pending()
    for waiting in pending:
        yield from _give_up(waiting, notice, now)
    return RestoredWork(turns=len(open_turns), waiting=len(pending), deliveries=owed)


def _fail(row: TurnRow, notice: str, now: float) -> Work[None]:
    key = SessionKey.parse(row.session)
    epoch = yield from turns.claim(row.id, row.epoch, row.owner or OwnerId(""))
    # If a message is damaged, the open calls of the turn get no results here. `History` repairs
    # such a turn later.
    with suppress(msgspec.DecodeError):
        writer = TranscriptWriter(
            turn=row.id,
            session=key,
            generation=row.generation,
            transient=row.transient,
            account=row.account,
            person=row.person,
        )
        yield from transcript.answer_open_calls(writer, "Not finished: the turn failed.", now)
    yield from turns.close(row.id, epoch, "failed", now, reason=(notice, RESTORED))
    if row.state == "suspended":
        yield from deliveries.owe_again(row.id, Content(text=notice), key.agent, now)
    else:
        yield from deliveries.complete(row.id, Content(text=notice), now)
    if row.trigger == "api":
        yield from _keep_end(row.id, epoch, notice)
    yield from inbox.finish(row.id)


def _give_up(waiting: Waiting, notice: str, now: float) -> Work[None]:
    yield from inbox.bind(waiting.id, waiting.id, "done")
    yield from inbox.finish(waiting.id)
    agent = SessionKey.parse(waiting.session).agent
    target = waiting.event.origin.reply_to if waiting.event else None
    if target is None:
        yield from _keep_end(TurnId(waiting.id), 1, notice)
    else:
        yield from deliveries.owe(target, Content(text=notice), agent, None, now)


def _keep_end(turn: TurnId, epoch: int, notice: str) -> Work[None]:
    """Stores the event that tells readers of the turn how it ended."""
    first = epoch * EVENTS_PER_CLAIM + 1
    finished = TurnFinished(outcome="failed", text=notice, code=RESTORED)
    yield from turns.keep_events(turn, first, record(first, [finished]))
