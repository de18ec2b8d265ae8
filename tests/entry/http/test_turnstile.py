"""The requests of an app start a few at a time."""

import asyncio

import anyio
from starlette.types import Receive, Scope, Send

from hermes.control.turnstile import PER_ROUND
from hermes.entry.http.turnstile import TurnstileMiddleware
from hermes.testing.asgi import call, http_scope

BURST = PER_ROUND * 5 + 1


async def test_the_requests_of_an_app_share_one_turnstile() -> None:
    loop, now, rounds = asyncio.get_running_loop(), 0, list[int]()

    def count() -> None:
        nonlocal now
        now += 1
        if len(rounds) < BURST:
            loop.call_soon(count)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        rounds.append(now)
        await send({"type": "http.response.start", "status": 204, "headers": []})

    behind, scopes = TurnstileMiddleware(app), [http_scope() for _ in range(BURST)]
    loop.call_soon(count)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            for scope in scopes:
                group.start_soon(call, behind, scope)
    assert len(rounds) == BURST
    # Requests that were woken in one iteration run in the next, together with as many new requests.
    # So twice the limit can start in one iteration.
    assert max(rounds.count(number) for number in set(rounds)) <= 2 * PER_ROUND
