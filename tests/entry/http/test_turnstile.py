"""A crowd is let in a few at a time, in order, and nobody is forgotten."""

import anyio
import anyio.lowlevel

from hermes.entry.http.turnstile import WIDTH, Turnstile


async def test_the_first_of_a_round_do_not_wait() -> None:
    turnstile = Turnstile()
    with anyio.fail_after(1):
        for _ in range(WIDTH):
            await turnstile.enter()


async def test_a_crowd_passes_in_order_a_few_in_each_round() -> None:
    turnstile, passed = Turnstile(), list[int]()
    most, seen = 0, 0

    async def pass_through(number: int) -> None:
        await turnstile.enter()
        passed.append(number)

    async with anyio.create_task_group() as group:
        for number in range(WIDTH * 5 + 1):
            group.start_soon(pass_through, number)
        while len(passed) <= WIDTH * 5:
            most, seen = max(most, len(passed) - seen), len(passed)
            await anyio.lowlevel.checkpoint()
    assert passed == sorted(passed)
    assert most <= 2 * WIDTH


async def test_who_gives_up_does_not_hold_up_the_others() -> None:
    turnstile, passed = Turnstile(), list[int]()

    async def pass_through(number: int) -> None:
        await turnstile.enter()
        passed.append(number)

    async with anyio.create_task_group() as group:
        async with anyio.create_task_group() as leaving:
            for number in range(WIDTH * 2):
                leaving.start_soon(pass_through, number)
            leaving.cancel_scope.cancel()
        group.start_soon(pass_through, -1)
    assert passed[-1] == -1
