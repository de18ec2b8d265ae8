"""Finds the turn of a request that was repeated with its idempotency key, so that the request runs
only once."""

from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.state import inbox, session_lock, sessions, transcript, turns
from hermes.state.turns import TurnRow
from hermes.types.messages import Accepted, Duplicate, MessageEvent
from hermes.types.store import Work
from hermes.types.value import Value


class Repeated(Value):
    """The answer to a repeated request: its receipt, and its turn if the turn is run again."""

    receipt: Accepted | Duplicate
    claim: Claim | None = None
    """The turn of the request, if it failed and is run again."""


def repeat(
    transactions: TurnTransactions, event: MessageEvent, now: float
) -> Work[Repeated | None]:
    """Finds the turn of a repeated request. Returns None if the request must be handled like a new
    one.

    If the turn runs or has completed, the client gets its events. If the turn has failed for a
    reason that may be temporary, the turn continues from its last checkpoint. But if other messages
    were added to the conversation after the failure, the request is handled as a new message.
    """
    earlier = yield from inbox.find(event)
    if earlier is None:
        return None
    turn = earlier.turn if earlier.same else None
    failed = (yield from turns.failed_temporarily(turn)) if turn else None
    if failed is not None:
        yield from session_lock.lock(failed.session)
        failed = yield from turns.failed_temporarily(failed.id)
    if failed is None or failed.request not in (None, earlier.id):
        # The turn is not run again: it did not fail for a temporary reason, or a later request has
        # continued it.
        return Repeated(receipt=earlier)
    if (yield from _ends_its_session(failed)):
        claim = yield from transactions.run_again(failed, now)
        receipt = Accepted(id=earlier.id, turn=failed.id, after=earlier.after)
        return Repeated(receipt=receipt, claim=claim)
    yield from inbox.release_key(earlier.id)
    return None


def _ends_its_session(turn: TurnRow) -> Work[bool]:
    """Returns whether the turn is the last turn of its conversation, and no message waits for a
    turn there."""
    if turn.transient:
        return True
    if (yield from turns.open_in(turn.session)) or (yield from inbox.count_pending(turn.session)):
        return False
    session = yield from sessions.find(turn.session)
    if session is None or session.generation != turn.generation:
        return False
    return (yield from transcript.ends_with(turn.id, turn.session, turn.generation))
