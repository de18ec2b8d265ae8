"""Limits the rate of calls to each chat, and orders the calls that wait."""

import math
import time
from collections.abc import Callable
from enum import IntEnum

import anyio

from hermes.types.identity import Target

LONGEST_SLEEP = 3600.0
"""Seconds after which a waiting call checks the time again, even if nothing has changed."""


class Priority(IntEnum):
    """The priority of a waiting call to a chat. The call with the lowest number is made first."""

    FINAL = 0
    """The final answer of a turn, or a message that somebody sends to the chat."""
    QUESTION = 1
    NOTICE = 2
    """A message that is not the answer of a turn, such as an error or the reply to a command."""
    PREVIEW = 3
    PROGRESS = 4
    """The typing indicator, or a reaction."""


class Ticket:
    """A call that waits in the queue of its chat."""

    def __init__(self, priority: Priority, number: int, *, edit: bool) -> None:
        self.rank = (priority, number)
        self.edit = edit


class ChatQueue:
    """Decides when the calls of one chat may be made. It does no I/O; callers pass in the time.

    The call with the highest priority is made first. Calls of the same priority are made in the
    order in which they came.
    """

    def __init__(self) -> None:
        self.waiting: list[Ticket] = []
        self.free_at = -math.inf
        """The time from which the next call is allowed, on the clock of the caller."""
        self.edit_at = -math.inf
        """The time from which the next edit is allowed."""
        self.changed = anyio.Event()
        self._last = 0

    def join(self, priority: Priority, *, edit: bool) -> Ticket:
        self._last += 1
        ticket = Ticket(priority, self._last, edit=edit)
        self.waiting.append(ticket)
        self._notify()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        self.waiting.remove(ticket)
        self._notify()

    def wait_of(self, ticket: Ticket, now: float) -> float:
        """Returns the seconds until the call may be made; infinity while another call comes before
        it."""
        if min(one.rank for one in self.waiting) != ticket.rank:
            return math.inf
        at = max(self.free_at, self.edit_at) if ticket.edit else self.free_at
        return max(at - now, 0.0)

    def count(self, ticket: Ticket, now: float, interval: float, edit_interval: float) -> None:
        """Records that the call is made now."""
        self.free_at = now + interval
        if ticket.edit:
            self.edit_at = now + edit_interval

    def freeze(self, until: float) -> None:
        self.free_at = max(self.free_at, until)
        self._notify()

    def idle(self, now: float) -> bool:
        """Whether the queue can be forgotten, because no call waits and no pause is left."""
        return not self.waiting and max(self.free_at, self.edit_at) <= now

    def _notify(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()


class RateGate:
    """Delays the calls to a chat. Between two calls, it waits for the platform's interval. Between
    two edits, it also waits for our own interval. During a freeze, which a platform demands with
    "retry later", no call is made.

    The end of a freeze is a wall-clock time, because it is stored and read again after a restart.
    """

    def __init__(self, edit_interval: float = 0.0, clock: Callable[[], float] = time.time) -> None:
        self._edit_interval = edit_interval
        self._clock = clock
        self._queues: dict[tuple[str, str], ChatQueue] = {}

    def freeze(self, account: str, chat_id: str, until: float) -> None:
        self._queue(account, chat_id).freeze(until)

    def wait_for(self, target: Target, *, edit: bool = False) -> float:
        """Returns the seconds until a call may be made; 0 if it may be made now."""
        queue = self._queues.get((target.account, target.chat_id))
        if queue is None:
            return 0.0
        at = max(queue.free_at, queue.edit_at) if edit else queue.free_at
        return max(at - self._clock(), 0.0)

    async def enter(
        self, target: Target, interval: float, priority: Priority, *, edit: bool = False
    ) -> None:
        """Waits until a call may be made, and counts the call."""
        queue = self._queue(target.account, target.chat_id)
        ticket = queue.join(priority, edit=edit)
        try:
            while (seconds := queue.wait_of(ticket, self._clock())) > 0:
                changed = queue.changed
                with anyio.move_on_after(min(seconds, LONGEST_SLEEP)):
                    await changed.wait()
            queue.count(ticket, self._clock(), interval, self._edit_interval)
        finally:
            queue.leave(ticket)
            if queue.idle(self._clock()):
                self._queues.pop((target.account, target.chat_id), None)

    def _queue(self, account: str, chat_id: str) -> ChatQueue:
        return self._queues.setdefault((account, chat_id), ChatQueue())
