"""What must be looked after while nobody says anything: expiry, dead processes, retention."""

import logging
import time
from collections.abc import Awaitable, Callable

import anyio

from hermes.control.recovery import Recovery
from hermes.state import sessions, turns
from hermes.types.errors import HermesError
from hermes.types.identity import OwnerId, id_at
from hermes.types.protocols import Store, Work
from hermes.types.value import Value

log = logging.getLogger(__name__)

HOUR = 3600.0
DAY = 24 * HOUR
TICK_SECONDS = 1.0


class Retention(Value):
    requests: float = DAY
    """Seconds for which stateless requests can be replayed."""
    messages: float = 30 * DAY
    """Seconds for which finished rows of inbox and outbox are kept."""


class Upkeep:
    """One loop, for the process that holds the scheduler's lease."""

    def __init__(
        self,
        store: Store,
        owner: OwnerId,
        recovery: Recovery,
        retention: Retention,
        sweep: Callable[[], Awaitable[None]],
    ) -> None:
        self._store = store
        self._owner = owner
        self._recovery = recovery
        self._retention = retention
        self._sweep = sweep
        self._lease: int | None = None
        self._forgotten_at = 0.0

    async def run(self) -> None:
        while True:
            await anyio.sleep(TICK_SECONDS)
            try:
                await self._tick()
            except HermesError as error:
                log.error("upkeep failed, trying again: %s", error)
            except Exception:
                log.exception("upkeep failed, trying again")

    async def _tick(self) -> None:
        if self._store.trouble:
            await self._store.run(_touch, self._owner)
        if self._lease is None:
            self._lease = await self._recovery.lease("scheduler")
        if self._lease is None:
            return
        expired = await self._store.run(_expire_questions, time.time())
        if expired or await self._recovery.dead():
            await self._sweep()
        if time.monotonic() - self._forgotten_at > HOUR:
            self._forgotten_at = time.monotonic()
            now = time.time()
            await self._store.run(forget_requests, now - self._retention.requests)
            await self._store.run(forget_messages, now - self._retention.messages)
            await self._store.run(sessions.forget_prompts)


def _touch(owner: OwnerId) -> Work[None]:
    """The smallest write: shows whether the disk takes it again."""
    yield "update owners set started_at = started_at where id = ?", (owner,)


def _expire_questions(now: float) -> Work[int]:
    """Decides what nobody answered in time; how many there were."""
    overdue = yield from turns.overdue_questions(now)
    for question in overdue:
        yield from turns.decide(question, "expired", None, "", now)
    return len(overdue)


def forget_requests(before: float) -> Work[None]:
    """Drops what stateless requests left for replays, and every turn's events."""
    last = id_at(before)
    closed = "state not in ('running', 'suspended')"
    old = f"(select id from turns where transient = 1 and id < ? and {closed})"  # noqa: S608
    yield f"delete from messages where transient = 1 and turn in {old}", (last,)  # noqa: S608
    yield f"delete from inbox where id in {old}", (last,)  # noqa: S608
    yield f"delete from calls where turn in {old}", (last,)  # noqa: S608
    yield f"delete from questions where turn in {old}", (last,)  # noqa: S608
    yield (
        "delete from run_events where turn < ? and turn not in"
        " (select id from turns where state in ('running', 'suspended'))",
        (last,),
    )
    yield f"delete from turns where transient = 1 and id < ? and {closed}", (last,)  # noqa: S608


def forget_messages(before: float) -> Work[None]:
    """Drops finished rows of inbox and outbox: the transcript keeps what was said."""
    last = id_at(before)
    yield "delete from inbox where state = 'done' and id < ?", (last,)
    yield "delete from deliveries where state in ('delivered', 'dead') and id < ?", (last,)
    yield "delete from freezes where until < ?", (before,)
