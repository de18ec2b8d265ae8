"""Calls to a chat keep the permitted rate. Waiting calls are made in the order of their
priority."""

import math
import time
from itertools import pairwise

import anyio
from hypothesis import given
from hypothesis import strategies as st

from hermes.control.rate_gate import ChatQueue, Priority, RateGate, Ticket
from hermes.testing.running import until
from hermes.types.identity import Target

CHAT = Target(account="a", chat_id="1")


async def test_calls_to_one_chat_keep_their_interval() -> None:
    gate = RateGate()
    since = time.time()
    for _ in range(4):
        await gate.enter(CHAT, 0.05, Priority.FINAL)
    assert time.time() - since >= 0.15
    assert gate.wait_for(Target(account="a", chat_id="2")) == 0


async def test_no_call_is_made_during_a_pause_of_the_platform() -> None:
    gate = RateGate()
    since = time.time()
    gate.freeze("a", "1", since + 0.1)
    gate.freeze("a", "1", since)
    assert gate.wait_for(CHAT) > 0
    await gate.enter(CHAT, 0, Priority.FINAL)
    assert time.time() >= since + 0.1
    assert gate.wait_for(CHAT) == 0


async def test_edits_keep_their_own_interval() -> None:
    gate = RateGate(edit_interval=0.1)
    since = time.time()
    await gate.enter(CHAT, 0, Priority.PREVIEW, edit=True)
    await gate.enter(CHAT, 0, Priority.PROGRESS)
    assert gate.wait_for(CHAT) == 0
    assert gate.wait_for(CHAT, edit=True) > 0
    await gate.enter(CHAT, 0, Priority.FINAL, edit=True)
    assert time.time() - since >= 0.1


class Clock:
    """A clock whose time the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_waiting_calls_are_made_by_priority_and_then_in_the_order_of_their_arrival() -> None:
    clock, made = Clock(), []
    gate = RateGate(clock=clock)
    gate.freeze("a", "1", clock.now + 5)
    wanted = [
        *(Priority.PROGRESS, Priority.PREVIEW, Priority.FINAL, Priority.NOTICE),
        *(Priority.PREVIEW, Priority.QUESTION, Priority.FINAL),
    ]

    async def call(number: int, priority: Priority) -> None:
        await gate.enter(CHAT, 0, priority)
        made.append((priority, number))

    async with anyio.create_task_group() as group:
        for number, priority in enumerate(wanted):
            group.start_soon(call, number, priority)
        await until(lambda: len(gate._queues["a", "1"].waiting) == len(wanted))
        assert made == []
        clock.now += 6
        # The call of `freeze` wakes the waiting calls, so that they read the changed clock.
        gate.freeze("a", "1", 0)
    assert made == sorted(made)
    assert len(made) == len(wanted)


async def test_a_call_that_is_cancelled_does_not_block_the_others() -> None:
    gate = RateGate()
    gate.freeze("a", "1", time.time() + 0.2)
    async with anyio.create_task_group() as group:
        with anyio.move_on_after(0.05):
            await gate.enter(CHAT, 0, Priority.FINAL)
        group.start_soon(gate.enter, CHAT, 0, Priority.PROGRESS)
    assert gate._queues == {}


events = st.lists(
    st.tuples(
        st.floats(0, 3),
        st.sampled_from(Priority),
        st.booleans(),
        st.sampled_from(("join", "leave", "freeze")),
    ),
    max_size=40,
)


@given(events, st.sampled_from((0.0, 0.5)), st.sampled_from((0.0, 1.0)))
def test_every_call_is_made_in_order_and_at_the_permitted_times(
    events: list[tuple[float, Priority, bool, str]], interval: float, edit_interval: float
) -> None:
    queue, now, frozen = ChatQueue(), 0.0, -math.inf
    calls: list[float] = []
    edits: list[float] = []

    def pass_until(end: float) -> None:
        """Makes all calls that may be made before the time `end`."""
        nonlocal now
        while queue.waiting:
            ready = {one: queue.wait_of(one, now) for one in queue.waiting}
            ((ticket, seconds),) = [pair for pair in ready.items() if pair[1] < math.inf]
            assert ticket.rank == min(one.rank for one in queue.waiting)
            if now + seconds > end:
                break
            # Rounding can make `now + seconds` a little less than the permitted time, which would
            # look like a call that is too early.
            now = max(now, now + seconds, queue.free_at, queue.edit_at if ticket.edit else 0.0)
            assert now >= frozen
            queue.count(ticket, now, interval, edit_interval)
            queue.leave(ticket)
            calls.append(now)
            edits.extend([now] if ticket.edit else [])
        now = max(now, end) if end < math.inf else now

    joined: list[Ticket] = []
    for pause, priority, edit, what in events:
        pass_until(now + pause)
        if what == "join":
            joined.append(queue.join(priority, edit=edit))
        elif what == "leave" and queue.waiting:
            queue.leave(queue.waiting[0])
        elif what == "freeze":
            frozen = max(frozen, now + pause)
            queue.freeze(frozen)
    pass_until(math.inf)
    assert queue.waiting == []
    assert all(later >= one + interval for one, later in pairwise(calls))
    assert all(later >= one + edit_interval for one, later in pairwise(edits))
