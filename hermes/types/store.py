"""The store's protocol: transactions, the processes that share the store, and their changes."""

from collections.abc import AsyncIterator, Callable, Generator, Sequence
from typing import Any, Literal, ParamSpec, Protocol, TypeVar

from hermes.types.identity import OwnerId

T = TypeVar("T")
P = ParamSpec("P")

Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any]]
Work = Generator[Statement, list[Row], T]
"""One transaction: yields statements, receives rows, returns its result. No await inside."""
OwnerKind = Literal["gateway", "terminal"]
"""The kind of a process that works on the store."""


class Store(Protocol):
    @property
    def trouble(self) -> str | None:
        """Why the last commit failed; None while commits succeed."""
        ...

    @property
    def owner(self) -> OwnerId:
        """The id of this process; only for a store that was opened with a kind."""
        ...

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Commits `transaction(*args, **kwargs)`, or raises an error and changes nothing.

        The function is called again if its transaction has to be retried: it must change nothing
        but the store, and compute everything that it returns from its arguments and its rows.
        """
        ...

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `transaction(*args, **kwargs)`, which must not write, on one snapshot."""
        ...

    async def dead(self, kind: OwnerKind | None = None) -> list[OwnerId]:
        """Registered processes, of one kind or of all, that no longer run."""
        ...

    def changes(self) -> AsyncIterator[None]:
        """Yields soon after other processes have committed, once for any number of commits.

        The first item covers everything since the store was opened.
        """
        ...

    def permission(self) -> AsyncIterator[bool]:
        """Whether this process may run turns: yields after each change.

        False after it has lost the proof that it is alive, so that others may take its turns over;
        True when it has the proof again.
        """
        ...
