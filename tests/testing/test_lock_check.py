"""The check finds a transaction that does not lock its session."""

from pathlib import Path

import pytest

from hermes.state import inbox, session_lock
from hermes.testing.lock_check import locks_checked
from hermes.testing.rows import US, said, session
from hermes.testing.running import wrapped_store
from hermes.testing.stores import open_test_store
from hermes.types.messages import Duplicate
from hermes.types.store import Work


def unlocked() -> Work[Duplicate | None]:
    return (yield from inbox.insert("i", said("k"), session(), None, US))


def locked() -> Work[Duplicate | None]:
    yield from session_lock.lock(str(session()))
    return (yield from inbox.insert("j", said("l"), session(), None, US))


async def test_the_error_names_a_forgotten_lock(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        with pytest.raises(AssertionError, match="'unlocked'"), locks_checked(__name__):
            assert await wrapped_store(store, lambda store: store).run(unlocked) is None
        with locks_checked(__name__):
            assert await wrapped_store(store, lambda store: store).run(locked) is None
