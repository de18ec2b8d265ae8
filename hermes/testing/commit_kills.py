"""Ends a gateway after a chosen commit, as if it were killed, but inside the test's own process.

After the kill, every transaction and every call to the platform fails. Therefore the store and the
platform stay as they were at the moment of the kill.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
from msgspec.structs import replace

from hermes.control.gateway import Gateway
from hermes.testing.crash_child import READS
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import Conditions, WrappedStore, running, transaction_name
from hermes.types.models import ModelProvider
from hermes.types.store import Store, Work

T = TypeVar("T")
P = ParamSpec("P")


class Killed(Exception):
    """Raised in every task of a gateway that was killed."""


class CommitKill:
    """Counts the commits of a gateway from the first message on, and kills the gateway after one of
    these commits."""

    def __init__(self, after: int | None = None) -> None:
        """The gateway is killed after the commit with the number `after`; never if `after` is
        None."""
        self.dead = False
        self.scope = anyio.CancelScope()
        """The scope in which the gateway runs."""
        self.commits: list[str] = []
        """The names of the transactions that were committed."""
        self._after = after

    def wrap(self, store: Store) -> Store:
        return _KilledStore(self, store)

    def note(self, name: str) -> None:
        if name in READS or not (self.commits or name == "Intake.take"):
            return
        self.commits.append(name)
        if len(self.commits) == self._after:
            self.dead = True
            self.scope.cancel()
        self.check()

    def check(self) -> None:
        if self.dead:
            raise Killed(f"killed after {self.commits[-1]}")


class _KilledStore(WrappedStore):
    def __init__(self, kill: CommitKill, store: Store) -> None:
        super().__init__(store)
        self._kill = kill

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        self._kill.check()
        result = await self.inner.run(transaction, *args, **kwargs)
        self._kill.check()
        self._kill.note(transaction_name(transaction))
        return result


@asynccontextmanager
async def killable(
    home: Path,
    server: ChatServer,
    model: ModelProvider,
    kill: CommitKill,
    conditions: Conditions,
) -> AsyncIterator[Gateway]:
    """Runs a gateway for a chat that can't edit messages, until the block ends or the gateway is
    killed."""

    def trouble(_kind: str, _chat: str) -> Exception | None:
        return Killed() if kill.dead else None

    server.trouble = trouble
    watched = replace(conditions, wrap_store=kill.wrap)
    try:
        with kill.scope:
            async with running(home, [PlainAdapter(server)], model, watched) as gateway:
                yield gateway
    except* Killed:
        pass
