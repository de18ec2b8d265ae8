"""A turnstile lets the requests of a burst pass in order, a few at a time. In the end, every
request has passed."""

import asyncio
from typing import Protocol

import anyio
import pytest

from hermes.control.turnstile import PER_ROUND, Turnstile

BURST = PER_ROUND * 5 + 1


class Gate(Protocol):
    async def enter(self) -> None: ...


class OpenGate:
    """A turnstile that lets every request pass at once. With it, a test shows that the checks would
    notice a turnstile that does not work."""

    async def enter(self) -> None:
        pass


async def rounds_of_a_burst(gate: Gate) -> list[int]:
    """Returns a number for each request of a burst: the iteration of the event loop in which the
    request passed."""
    loop, now, rounds = asyncio.get_running_loop(), 0, list[int]()

    def count() -> None:
        nonlocal now
        now += 1
        if len(rounds) < BURST:
            loop.call_soon(count)

    async def pass_through() -> None:
        await gate.enter()
        rounds.append(now)

    loop.call_soon(count)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for _ in range(BURST):
                group.start_soon(pass_through)
    return rounds


def most_in_one_round(rounds: list[int]) -> int:
    return max(rounds.count(number) for number in set(rounds))


async def test_in_each_iteration_of_the_event_loop_a_few_requests_of_a_burst_pass() -> None:
    rounds = await rounds_of_a_burst(Turnstile())
    assert len(rounds) == BURST
    # Requests that were woken in one iteration run in the next, together with as many new requests.
    # So twice the limit can pass in one iteration.
    assert most_in_one_round(rounds) <= 2 * PER_ROUND


async def test_without_a_turnstile_all_requests_of_a_burst_pass_at_once() -> None:
    assert most_in_one_round(await rounds_of_a_burst(OpenGate())) == BURST


async def test_the_first_requests_of_an_iteration_do_not_wait() -> None:
    turnstile = Turnstile()
    for _ in range(PER_ROUND):
        with pytest.raises(StopIteration):
            turnstile.enter().send(None)
    waiting = turnstile.enter()
    assert waiting.send(None) is not None
    waiting.close()


async def test_a_burst_passes_in_order() -> None:
    turnstile, passed = Turnstile(), list[int]()

    async def pass_through(number: int) -> None:
        await turnstile.enter()
        passed.append(number)

    async with anyio.create_task_group() as group:
        for number in range(BURST):
            group.start_soon(pass_through, number)
    assert passed == list(range(BURST))


async def test_a_cancelled_request_does_not_block_the_others() -> None:
    turnstile, passed = Turnstile(), list[int]()

    async def pass_through(number: int) -> None:
        await turnstile.enter()
        passed.append(number)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as leaving:
                for number in range(PER_ROUND * 2):
                    leaving.start_soon(pass_through, number)
                leaving.cancel_scope.cancel()
            group.start_soon(pass_through, -1)
    assert passed[-1] == -1
