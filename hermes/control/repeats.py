"""Requests that are sent again with their idempotency key: answered once, and run once."""

from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.state import inbox, sessions, transcript, turns
from hermes.state.turns import TurnRow
from hermes.types.messages import Accepted, Duplicate, MessageEvent
from hermes.types.store import Work
from hermes.types.value import Value


class Repeated(Value):
    """How a repeated request is answered."""

    receipt: Accepted | Duplicate
    claim: Claim | None = None
    """Its turn, if that failed and is run again."""


def repeat(
    transactions: TurnTransactions, event: MessageEvent, now: float
) -> Work[Repeated | None]:
    """Finds the turn of a repeated request; None if the request has to be taken in like a new one.

    A turn that runs or has completed is followed. One that failed for a possibly temporary reason
    is continued where it failed. If its conversation has gone on since, the request is taken in as
    a new message instead.
    """
    earlier = yield from inbox.find(event)
    if earlier is None:
        return None
    turn = earlier.turn if earlier.same else None
    failed = (yield from turns.failed_temporarily(turn)) if turn else None
    if failed is None or failed.request not in (None, earlier.id):
        # The answer to a request before the last one is not the end of the turn.
        return Repeated(receipt=earlier)
    if (yield from _ends_its_session(failed)):
        claim = yield from transactions.run_again(failed, now)
        receipt = Accepted(id=earlier.id, turn=failed.id, after=earlier.after)
        return Repeated(receipt=receipt, claim=claim)
    yield from inbox.release_key(earlier.id)
    return None


def _ends_its_session(turn: TurnRow) -> Work[bool]:
    """Whether nothing came after the turn in its conversation, and nothing waits there."""
    if turn.transient:
        return True
    if (yield from turns.open_in(turn.session)) or (yield from inbox.count_pending(turn.session)):
        return False
    session = yield from sessions.find(turn.session)
    if session is None or session.generation != turn.generation:
        return False
    return (yield from transcript.ends_with(turn.id, turn.session, turn.generation))
