"""Transactions that take the lock of the same session run one after the other."""

from functools import partial
from pathlib import Path

from hermes.state import inbox, session_lock, turns
from hermes.testing.rows import US, outcomes_of, said, session, turn_row
from hermes.testing.stores import open_test_store
from hermes.types.store import Work

KEY = str(session())


def accept(number: int) -> Work[str]:
    """Accepts a message under the lock of its session. Opens a turn if the session is idle;
    otherwise the message waits."""
    yield from session_lock.lock(KEY)
    id = f"t{number:02}"
    yield from inbox.insert(id, said(id), session(), None, US)
    if (yield from turns.open_in(KEY)):
        return "waits"
    yield from turns.insert(turn_row(id), "main", "7")
    return "runs"


async def test_only_one_of_many_concurrent_messages_opens_a_turn(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        outcomes = await outcomes_of(store, [partial(accept, number) for number in range(30)])
        assert sorted(map(str, outcomes)) == ["runs", *["waits"] * 29]
