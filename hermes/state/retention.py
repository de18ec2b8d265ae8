"""Deletes expired rows."""

from hermes.types.identity import id_prefix_at
from hermes.types.store import Work


def forget_requests(before: float) -> Work[None]:
    """Deletes old rows of stateless requests, and the old events of all turns."""
    last = id_prefix_at(before)
    closed = "state not in ('running', 'suspended')"
    old = f"(select id from turns where transient = 1 and id < ? and {closed})"  # noqa: S608
    yield f"delete from messages where transient = 1 and turn in {old}", (last,)  # noqa: S608
    # A turn has a row for the request that opened it, and for each request that resumed it.
    yield f"delete from inbox where turn in {old}", (last,)  # noqa: S608
    yield f"delete from calls where turn in {old}", (last,)  # noqa: S608
    yield f"delete from questions where turn in {old}", (last,)  # noqa: S608
    yield (
        "delete from run_events where turn < ? and turn not in"
        " (select id from turns where state in ('running', 'suspended'))",
        (last,),
    )
    yield f"delete from turns where transient = 1 and id < ? and {closed}", (last,)  # noqa: S608


def forget_messages(before: float) -> Work[None]:
    """Deletes finished rows of the inbox and the outbox. The transcript keeps their messages.

    A request whose options an open turn needs is kept.
    """
    last = id_prefix_at(before)
    yield (
        "delete from inbox where state = 'done' and id < ? and id not in (select request from turns"
        " where request is not null and state in ('running', 'suspended'))",
        (last,),
    )
    yield "delete from deliveries where state in ('delivered', 'dead') and id < ?", (last,)
    yield "delete from freezes where until < ?", (before,)
