"""Work that is not triggered by a message: expired questions, dead processes, retention."""

import logging
import math
import time
from collections.abc import Awaitable, Callable

import anyio

from hermes.control.media import MediaIntake
from hermes.control.recovery import Recovery
from hermes.control.stranded_work import StrandedWork
from hermes.state import bodies, owners, questions, sessions
from hermes.state.retention import forget_messages, forget_requests
from hermes.types.errors import HermesError
from hermes.types.store import Store, Work
from hermes.types.value import Value

log = logging.getLogger(__name__)

HOUR = 3600.0
DAY = 24 * HOUR
TICK_SECONDS = 1.0
SCHEDULER = "scheduler"
"""Name of the lease for maintenance. The process that holds the lease does this work."""


class Retention(Value):
    requests: float = DAY
    """Seconds for which requests without a session are kept. During this time, a client that
    repeats such a request gets the stored answer."""
    messages: float = 30 * DAY
    """Seconds for which finished rows of inbox and outbox are kept."""
    media: float = 30 * DAY
    """Seconds for which the files of sessions are kept after their last use. The files of requests
    without a session are kept as long as these requests."""


class Maintenance:
    """Runs the maintenance loop. Only the process that holds the lease for maintenance does the
    work of the loop."""

    def __init__(
        self,
        store: Store,
        recovery: Recovery,
        retention: Retention,
        sweep: Callable[[], Awaitable[None]],
        media: MediaIntake,
        stranded: StrandedWork | None = None,
    ) -> None:
        """`stranded` ends work that needs files which no running node has. It is None if all
        processes with this store have the same files."""
        self._store = store
        self._recovery = recovery
        self._retention = retention
        self._sweep = sweep
        self._media = media
        self._stranded = stranded
        self._lease: int | None = None
        self._forgotten_at = self._deleted_at = -math.inf

    async def run(self) -> None:
        while True:
            await anyio.sleep(TICK_SECONDS)
            try:
                await self._tick()
            except HermesError as error:
                log.error("maintenance failed, trying again: %s", error)
            except Exception:
                log.exception("maintenance failed, trying again")

    async def _tick(self) -> None:
        if self._store.trouble:
            await self._store.run(owners.touch, self._store.owner)
        await self._delete_media()
        if not await self._holds_lease():
            return
        expired = await self._store.run(_expire_questions, time.time())
        if expired or await self._store.dead():
            await self._sweep()
        if self._stranded is not None and await self._stranded.look():
            await self._sweep()
        if time.monotonic() - self._forgotten_at > HOUR:
            self._forgotten_at = time.monotonic()
            now, kept = time.time(), self._retention
            await self._store.run(forget_requests, now - kept.requests)
            await self._store.run(forget_messages, now - kept.messages)
            await self._store.run(bodies.forget_unused)
            await self._store.run(sessions.forget_prompts)

    async def _delete_media(self) -> None:
        """Deletes old files. Every process deletes its own files, even without the lease, because
        the holder of the lease may be a machine without these files."""
        if time.monotonic() - self._deleted_at > HOUR:
            self._deleted_at = time.monotonic()
            now, kept = time.time(), self._retention
            await self._media.forget(now - kept.requests, now - kept.media)

    async def _holds_lease(self) -> bool:
        """Takes the lease if it is free. Returns whether this process holds the lease now. A
        process that was paused may have lost the lease."""
        owner = self._store.owner
        if self._lease is not None and not await self._store.read(
            owners.holds_lease, SCHEDULER, owner, self._lease
        ):
            self._lease = None
        if self._lease is None:
            self._lease = await self._recovery.lease(SCHEDULER)
        return self._lease is not None


def _expire_questions(now: float) -> Work[int]:
    """Marks the questions that nobody answered in time as expired. Returns their number."""
    overdue = yield from questions.overdue_questions(now)
    for question in overdue:
        yield from questions.decide(question, "expired", None, "", now)
    return len(overdue)
