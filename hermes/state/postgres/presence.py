"""Proves that this process is alive, and tells other processes about its commits.

A process holds an advisory lock on a connection of its own. The server frees the lock when the
connection ends for any reason. The same connection receives the notifications of other processes.
"""

import logging
import os
import platform
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
import psycopg

from hermes.state import owners
from hermes.state.changes import Changes
from hermes.state.postgres import transactions
from hermes.state.postgres.bus import BUS_CHANNEL, COMMITS_CHANNEL, PostgresBus, channel_of
from hermes.state.postgres.pool import Pool, Server, application_name, is_pooled
from hermes.types.bus import Bus
from hermes.types.deployment import StoreNode
from hermes.types.errors import StoreUnavailable
from hermes.types.identity import FolderId, OwnerId
from hermes.types.store import OwnerKind, Work

log = logging.getLogger(__name__)

BEAT_SECONDS = 5.0
"""Seconds between two heartbeats of a process."""
LOST_SECONDS = 5.0
"""Seconds that a process may be without its lock before it stops its turns."""
STALE_SECONDS = 30.0
"""If the heartbeat of a process is older than this number of seconds, other processes end its
connections and take its work over, even if the process still holds its lock."""
RECONNECT_SECONDS = 0.5
"""Seconds between two attempts to connect. While there is no connection, readers poll for changes
at the same interval."""
GRACE_SECONDS = 15.0
"""Number of seconds after the server's start during which a process without its lock still counts
as alive. A restart of the server frees all locks, and the processes need this time to take them
again."""
ANNOUNCE_SECONDS = 0.05
"""Delay in seconds before a commit is announced. All commits during the delay share one
announcement."""
_NAMESPACE = 0x48524D53
"""An advisory lock has two keys. This is the first key of the lock of every process; the second key
is a hash of the process's id."""


def held_locks() -> Work[dict[OwnerId, bool]]:
    """Returns the registered processes that hold their lock or may still take it. Each process id
    maps to True if the process hangs: its heartbeat is older than `STALE_SECONDS`."""
    rows = yield (
        "select o.id, o.beat_at < extract(epoch from clock_timestamp()) - ?"
        " from owners o where o.beat_at is not null"
        " and (exists (select 1 from pg_locks l where l.locktype = 'advisory'"
        " and l.granted and l.objsubid = 2"
        " and l.database = (select d.oid from pg_database d where d.datname = current_database())"
        " and l.classid = cast(? as bigint)::oid"
        " and l.objid = (hashtext(o.id)::bigint & 4294967295)::oid)"
        # Shortly after the server's start, a process without a lock may still be alive.
        " or (o.beat_at < extract(epoch from pg_postmaster_start_time())"
        " and pg_postmaster_start_time()"
        " > clock_timestamp() - make_interval(secs => cast(? as double precision))))",
        (STALE_SECONDS, _NAMESPACE, GRACE_SECONDS),
    )
    return {OwnerId(id): stale for id, stale in rows}


def listed_nodes() -> Work[list[StoreNode]]:
    """Returns every registered process, the oldest first."""
    held = yield from held_locks()
    rows = yield (
        "select id, kind, host, pid, extract(epoch from clock_timestamp()) - beat_at"
        " from owners order by started_at, id",
        (),
    )
    return [
        StoreNode(
            id=OwnerId(id),
            kind=kind,
            host=host,
            pid=pid,
            alive=OwnerId(id) in held,
            beat_age=None if age is None else float(age),
        )
        for id, kind, host, pid, age in rows
    ]


def end_connections(owner: OwnerId) -> Work[None]:
    """Ends the connections of a process that hangs. This also frees the lock of the process and
    rolls back its transactions."""
    yield (
        "select pg_terminate_backend(pid) from (select pid from pg_stat_activity"
        " where application_name = ? and datname = current_database()"
        " union select pid from pg_locks where locktype = 'advisory' and granted"
        " and objsubid = 2 and classid = cast(? as bigint)::oid"
        " and objid = (hashtext(?)::bigint & 4294967295)::oid"
        " and database = (select oid from pg_database where datname = current_database())) as its",
        (application_name(owner), _NAMESPACE, owner),
    )


class Presence:
    """The connection that holds the lock of this process. It is reopened whenever it is lost.

    If `bus` is given, a registered process sends messages and announcements over this bus, and not
    as notifications.
    """

    def __init__(
        self,
        id: str,
        pool: Pool,
        direct: Server,
        group: anyio.abc.TaskGroup,
        bus: Bus | None = None,
    ) -> None:
        self.trouble: str | None = None
        """The reason why this process does not hold its presence lock at the moment; None while it
        holds the lock."""
        self._id = id
        """The id of this store in its notifications. The store ignores notifications with its own
        id."""
        self._owner: OwnerId | None = None
        self._kind: OwnerKind = "gateway"
        self._folder: FolderId | None = None
        self._pool = pool
        self._direct = direct
        self._group = group
        self._changes = Changes()
        self._backend = 0
        self._following = False
        self._permitted = True
        self._permission_changed = anyio.Event()
        self._uncommunicated = False
        """Whether there is a commit that this process has not announced to other processes yet."""
        self._announcing = False
        self._latest = 0
        """The highest transaction number that this store has committed."""
        self._seen = 0
        """A transaction number. All transactions with lower numbers had ended before this process
        began to listen, so announcements of these transactions are ignored."""
        self._lost_at = 0.0
        self._proved_at = time.monotonic()
        self._notifications = PostgresBus(pool, self._id)
        self.bus: Bus = bus or self._notifications
        """Sends messages to other processes and receives messages from them. Only a registered
        process receives messages."""

    @property
    def owner(self) -> OwnerId:
        assert self._owner is not None, "the store was opened without a kind"
        return self._owner

    def need_proof(self) -> None:
        """Raises StoreUnavailable if other processes may have taken over the work of this process.

        This can happen while the process is paused or can't reach the server. The error is raised
        until the lock is confirmed again.
        """
        if self._owner is not None and self._stale:
            raise StoreUnavailable(
                f"the lock of this process was not confirmed for {STALE_SECONDS:g} s: nothing is"
                " committed until the lock is confirmed, because another process may have taken"
                " over the work of this process"
            )

    @property
    def _stale(self) -> bool:
        return time.monotonic() - self._proved_at > STALE_SECONDS

    def changes(self) -> AsyncIterator[None]:
        if not self._following:
            self._start_following(None)
        return self._changes.noticed()

    async def permission(self) -> AsyncIterator[bool]:
        told: bool | None = None
        while True:
            while told == self._permitted:
                await self._permission_changed.wait()
            told = self._permitted
            yield told

    @asynccontextmanager
    async def registered(
        self, kind: OwnerKind, folder: FolderId | None = None
    ) -> AsyncIterator[None]:
        """Registers this process until the block ends."""
        self._owner, self._kind, self._folder = OwnerId(self._id), kind, folder
        self._start_following(await self._opened(starting=True))
        try:
            yield
        finally:
            await self._leave()

    def note_commit(self, number: int) -> None:
        """Makes sure that the commit of the transaction `number` is announced to other processes
        soon. The announcement is not part of the transaction."""
        self._latest = max(self._latest, number)
        self._uncommunicated = True
        if not self._announcing:
            self._announcing = True
            self._group.start_soon(self._announce_soon)

    async def close(self) -> None:
        if self._uncommunicated:
            await self._announce()
        self._notifications.close()

    async def _announce_soon(self) -> None:
        await anyio.sleep(ANNOUNCE_SECONDS)
        self._announcing = False
        await self._announce()

    async def _announce(self) -> None:
        self._uncommunicated = False
        await self.bus.announce(self._latest)

    async def _learn_of_commits(self, bus: Bus) -> None:
        async for number in bus.announced():
            if number is None or number >= self._seen:
                self._changes.notice()

    def _start_following(self, connection: psycopg.AsyncConnection[Any] | None) -> None:
        self._following = True
        self._group.start_soon(self._follow, connection)
        # Processes that are not registered announce their commits with notifications.
        self._group.start_soon(self._learn_of_commits, self._notifications)
        if self.bus is not self._notifications:
            self._group.start_soon(self._learn_of_commits, self.bus)

    async def _follow(self, connection: psycopg.AsyncConnection[Any] | None) -> None:
        """Keeps the connection open. Whenever it is lost, opens a new connection and takes the lock
        again."""
        while True:
            try:
                if connection is None:
                    connection = await self._opened()
                self._regain()
                async with connection:
                    while True:
                        await self._receive(connection)
                        await self._beat(connection)
            except (psycopg.Error, OSError, TimeoutError, StoreUnavailable) as error:
                connection = None
                await self._lose(error)

    async def _receive(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Receives notifications until the next heartbeat is due."""
        async for one in connection.notifies(timeout=BEAT_SECONDS):
            self._notifications.take(one.channel, one.payload)

    async def _opened(self, *, starting: bool = False) -> psycopg.AsyncConnection[Any]:
        connection = await self._direct.connect(starting=starting)
        try:
            with anyio.fail_after(BEAT_SECONDS):
                await connection.execute(f"listen {COMMITS_CHANNEL}")
                self._seen = await _completed(connection)
                if starting and await is_pooled(connection):
                    log.warning(
                        "%s is reached through a pooler: set store.direct_url to the address of the"
                        " server itself, which locks and notifications need",
                        self._direct.place,
                    )
                if self._owner is not None:
                    if self.bus is self._notifications:
                        await connection.execute(f"listen {BUS_CHANNEL}")
                        await connection.execute(f'listen "{channel_of(self._owner)}"')
                    await self._lock(connection, self._owner)
        except (psycopg.Error, TimeoutError) as error:
            await connection.close()
            raise StoreUnavailable(f"the lock of this process can't be taken ({error})") from error
        except BaseException:
            await connection.close()
            raise
        # Other processes may have committed before this connection began to listen. So the code
        # that reads announcements must assume that some were lost.
        self._notifications.interrupted()
        return connection

    async def _lock(self, connection: psycopg.AsyncConnection[Any], owner: OwnerId) -> None:
        if self._backend:
            # The server may not have noticed yet that our previous connection has ended. That
            # connection still holds the lock, so it is terminated.
            await connection.execute(
                "select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'"
                " and classid = %s::bigint::oid and objsubid = 2 and pid = %s",
                (_NAMESPACE, self._backend),
            )
        await connection.execute("select pg_advisory_lock(%s, hashtext(%s))", (_NAMESPACE, owner))
        self._backend = connection.info.backend_pid
        await connection.execute(
            "insert into owners (id, kind, host, pid, folder, started_at, backend, beat_at)"
            " values (%s, %s, %s, %s, %s, %s, %s, extract(epoch from clock_timestamp()))"
            " on conflict (id) do update set backend = excluded.backend,"
            " beat_at = excluded.beat_at",
            (
                owner,
                self._kind,
                platform.node(),
                os.getpid(),
                self._folder,
                time.time(),
                self._backend,
            ),
        )
        self._proved_at = time.monotonic()

    async def _beat(self, connection: psycopg.AsyncConnection[Any]) -> None:
        if self._owner is None:
            return
        with anyio.fail_after(BEAT_SECONDS):
            await connection.execute(
                "update owners set beat_at = extract(epoch from clock_timestamp()) where id = %s",
                (self._owner,),
            )
        self._proved_at = time.monotonic()

    def _regain(self) -> None:
        if self.trouble is not None:
            log.warning("this process has its connection for locks and notifications again")
            self.trouble = None
        self._set_permitted(permitted=True)

    async def _lose(self, error: Exception) -> None:
        """Waits before the next attempt to connect. If this process has been without its lock for
        too long, it must stop its turns, so this method withdraws the permission to run turns."""
        now = time.monotonic()
        if self.trouble is None:
            log.error("the connection for locks and notifications is lost: %s", error)
            self._lost_at = now
        self.trouble = f"the lock of this process is lost ({error})"
        lost = now - self._lost_at > LOST_SECONDS or self._stale
        if self._permitted and self._owner is not None and lost:
            log.error("this process stops its turns: others may consider it dead")
            self._set_permitted(permitted=False)
        self._notifications.interrupted()
        await anyio.sleep(RECONNECT_SECONDS)

    def _set_permitted(self, *, permitted: bool) -> None:
        if permitted != self._permitted:
            self._permitted = permitted
            self._permission_changed.set()
            self._permission_changed = anyio.Event()

    async def _leave(self) -> None:
        try:
            channel = await self._pool.acquire()
            try:
                await transactions.commit(channel, lambda: leave(self.owner))
            finally:
                await self._pool.release(channel)
        except (StoreUnavailable, transactions.CommitDoubtful) as error:
            # No work is lost: this process no longer holds its lock, so other processes treat it as
            # dead and take its work over.
            log.error("can't remove this process from the store: %s", error)


async def _completed(connection: psycopg.AsyncConnection[Any]) -> int:
    """Returns a transaction number. All transactions with lower numbers have ended."""
    found = await connection.execute("select pg_snapshot_xmin(pg_current_snapshot())::text")
    row = await found.fetchone()
    assert row is not None
    return int(row[0])


def leave(owner: OwnerId) -> Work[None]:
    """Removes the row of this process from the list of processes. If the process leaves work that
    other processes should take over, the row stays and is marked as dead."""
    yield "update owners set beat_at = null where id = ?", (owner,)
    yield from owners.leave(owner)
