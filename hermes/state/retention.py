"""Deletes expired rows."""

from hermes.types.identity import id_prefix_at
from hermes.types.store import Work

TURNS_AT_ONCE = 1000
"""Maximum number of turns whose rows one statement deletes."""


def forget_requests(before: float) -> Work[None]:
    """Deletes old rows of two kinds: all rows of stateless requests (API requests without a
    session), and the events of all turns. `before` is the time before which rows are old. Open
    turns keep their rows."""
    last = id_prefix_at(before)
    # The turns are deleted first, and then only the rows of the turns that were really deleted. So
    # an open turn loses no row, even if it was resumed at the same moment.
    rows = yield (
        "delete from turns where transient = 1 and id < ?"
        " and state not in ('running', 'suspended') returning id",
        (last,),
    )
    turns = [row[0] for row in rows]
    for start in range(0, len(turns), TURNS_AT_ONCE):
        yield from _forget_rows(turns[start : start + TURNS_AT_ONCE])
    yield (
        "delete from run_events where turn < ? and turn not in"
        " (select id from turns where state in ('running', 'suspended'))",
        (last,),
    )


def _forget_rows(turns: list[str]) -> Work[None]:
    """Deletes the rows in other tables that belong to the deleted turns."""
    # The list gets a fixed length by repeating the last id, so that each table needs only one
    # prepared statement.
    padded = [*turns, *turns[-1:] * (TURNS_AT_ONCE - len(turns))]
    marks = ", ".join("?" for _ in padded)
    for table in ("messages", "calls", "questions"):
        yield f"delete from {table} where turn in ({marks})", padded  # noqa: S608
    yield f"delete from inbox where id in ({marks})", padded  # noqa: S608
    yield f"delete from inbox where turn <> id and turn in ({marks})", padded  # noqa: S608


def forget_messages(before: float) -> Work[None]:
    """Deletes answered messages from the inbox, and finished deliveries, if they are older than
    `before`. The transcript keeps the messages.

    An API request stays in the inbox while an open turn needs the options of the request.
    """
    last = id_prefix_at(before)
    yield (
        "delete from inbox where state = 'done' and id < ? and id not in (select request from turns"
        " where request is not null and state in ('running', 'suspended'))",
        (last,),
    )
    yield "delete from deliveries where state in ('delivered', 'dead') and id < ?", (last,)
    yield "delete from freezes where until < ?", (before,)
