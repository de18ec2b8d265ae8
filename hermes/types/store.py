"""The protocol of the store: transactions, and the processes that share it."""

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from hermes.types.bus import Bus
from hermes.types.identity import OwnerId

T = TypeVar("T")
P = ParamSpec("P")

Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any]]
Work = Generator[Statement, list[Row], T]
"""A transaction: a generator that yields statements, receives rows and returns its result."""
OwnerKind = Literal["gateway", "terminal"]
"""The kinds of processes that work on the store."""


class Store(Protocol):
    @property
    def trouble(self) -> str | None:
        """Why the last commit failed; None while commits succeed."""
        ...

    @property
    def owner(self) -> OwnerId:
        """The id of this process. It exists only if the store was opened with an `OwnerKind`."""
        ...

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Commits `transaction(*args, **kwargs)`, or raises an error and changes nothing.

        The function `transaction` is called again if the transaction is retried. So it must not
        change anything except the store, and its result must depend only on its arguments and on
        the rows.
        """
        ...

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `transaction(*args, **kwargs)` on one snapshot of the store. The transaction must
        not write."""
        ...

    async def dead(self, kind: OwnerKind | None = None) -> list[OwnerId]:
        """Returns the registered processes of this kind, or of all kinds, that no longer run."""
        ...

    @property
    def bus(self) -> Bus | None:
        """Carries messages between the processes that use the store; None if these processes share
        nothing but the store."""
        ...

    def changes(self) -> AsyncIterator[None]:
        """Yields soon after other processes have committed. One item can represent many commits.

        The first item represents all commits since the store was opened.
        """
        ...

    def permission(self) -> AsyncIterator[bool]:
        """Yields whether this process may run turns, and yields again after each change.

        The process holds a lock, which proves to other processes that it is alive. If the lock is
        lost, other processes may take over its turns, so the iterator yields False. It yields True
        when the process holds the lock again.
        """
        ...
