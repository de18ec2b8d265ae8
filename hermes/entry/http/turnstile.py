"""Starts the requests of a burst a few at a time, so that the burst can't block the event loop."""

from starlette.types import ASGIApp, Receive, Scope, Send

from hermes.control.turnstile import Turnstile


class TurnstileMiddleware:
    """Lets only a few new requests pass in each round of the event loop."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turnstile = Turnstile()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._turnstile.enter()
        await self._app(scope, receive, send)
