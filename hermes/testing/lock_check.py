"""Finds transactions that change a session without taking the session's lock. No database reports
this mistake."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from hermes.state.session_lock import LOCK_SESSION
from hermes.testing.running import WrappedStore, every_store_wrapped, transaction_name
from hermes.types.store import Store, Work

T = TypeVar("T")
P = ParamSpec("P")

_CHANGE = re.compile(
    r"(?:insert into|update|delete from) (inbox|turns|messages|questions|calls|compactions)\b"
)
UNLOCKED = {
    # Each UPDATE contains its condition, so the database checks the condition when it changes the
    # row.
    "_expire_questions",
    # The rows belong to processes that have ended, so no other process works on them.
    "Recovery._adopt_the_rest",
}
"""Transactions that change rows of sessions, but need no lock of the session. The comment above
each name says why."""
CHECKED = "hermes.control"
"""The package whose transactions are checked. Transactions that tests define are not checked,
because they change rows without the lock on purpose."""


class LockCheckingStore(WrappedStore):
    """Records the transactions that change a session without having taken the session's lock."""

    def __init__(self, package: str, found: set[str], store: Store) -> None:
        super().__init__(store)
        self._package = package
        self._found = found

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        name = transaction_name(transaction)

        def watched() -> Work[T]:
            locked = name in UNLOCKED or not _module(transaction).startswith(self._package)
            work = transaction(*args, **kwargs)
            try:
                statement = next(work)
                while True:
                    locked = locked or statement[0] == LOCK_SESSION
                    if not locked and _CHANGE.match(statement[0]):
                        self._found.add(name)
                    statement = work.send((yield statement))
            except StopIteration as end:
                result: T = end.value
                return result

        return await self.inner.run(watched)


def _module(transaction: Callable[..., object]) -> str:
    """Returns the module of the function, even if it is wrapped in a `partial`."""
    while isinstance(transaction, partial):
        transaction = transaction.func
    return transaction.__module__


@contextmanager
def locks_checked(package: str = CHECKED) -> Iterator[None]:
    """Fails if a gateway inside the block has changed a session without its lock."""
    found: set[str] = set()
    with every_store_wrapped(lambda store: LockCheckingStore(package, found, store)):
        yield
    assert not found, f"these transactions change a session without its lock: {sorted(found)}"
