"""A proxy between an adapter and a homeserver. It counts requests and messages, and can make
requests fail."""

import json
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited

_FORWARDED = ("Authorization", "Content-Type")


class SynapseProxy:
    """Forwards requests to a homeserver. While there are errors in `failures`, a request fails with
    the first of them instead."""

    def __init__(self, server: str, session: aiohttp.ClientSession) -> None:
        self.failures: deque[HermesError] = deque()
        """The errors of the next requests: each error is used for one request. The proxy reports
        the error in the same way as a homeserver, and does not forward the request."""
        self.requests: Counter[str] = Counter()
        """Maps each path segment to the number of requests with this segment: `requests["sync"]` is
        the number of syncs."""
        self.sent = 0
        """Number of messages and edits that the homeserver has accepted."""
        self.synced: Counter[str] = Counter()
        """Number of messages and edits that syncs have returned to the adapter, by sender."""
        self._server = server
        self._session = session
        self._runner = web.AppRunner(self._application(), handler_cancellation=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    @property
    def connections(self) -> int:
        """Number of open connections to the proxy."""
        return len(self._runner.server.connections) if self._runner.server else 0

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()

    async def stop(self) -> None:
        await self._runner.cleanup()

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=1 << 27)
        application.router.add_route("*", "/{path:.*}", self._forward)
        return application

    async def _forward(self, request: web.Request) -> web.Response:
        self.requests.update(request.path.split("/"))
        if self.failures:
            return _failed(self.failures.popleft())
        headers = {name: request.headers[name] for name in _FORWARDED if name in request.headers}
        async with self._session.request(
            request.method,
            self._server + request.raw_path,
            headers=headers,
            data=await request.read(),
        ) as answer:
            body = await answer.read()
            self.sent += "/send/" in request.path and answer.status == 200
            if request.path.endswith("/sync"):
                self._count(body)
            kind = answer.headers.get("Content-Type", "application/json")
            return web.Response(status=answer.status, body=body, headers={"Content-Type": kind})

    def _count(self, sync: bytes) -> None:
        for room in json.loads(sync).get("rooms", {}).get("join", {}).values():
            for event in room["timeline"]["events"]:
                if event["type"] == "m.room.message":
                    self.synced[event["sender"]] += 1


def _failed(error: HermesError) -> web.Response:
    match error:
        case RateLimited(retry_after=float(seconds)):
            limit = {
                "errcode": "M_LIMIT_EXCEEDED",
                "error": "",
                "retry_after_ms": int(seconds * 1000),
            }
            return web.json_response(limit, status=429)
        case AuthFailed():
            return web.json_response({"errcode": "M_UNKNOWN_TOKEN", "error": ""}, status=401)
        case Disconnected():
            return web.Response(status=502, text="<h1>Bad Gateway</h1>")
        case _:
            return web.json_response({"errcode": "M_FORBIDDEN", "error": ""}, status=403)


@asynccontextmanager
async def synapse_proxy(server: str) -> AsyncIterator[SynapseProxy]:
    """Runs a proxy in front of the homeserver at this address until the block ends."""
    async with aiohttp.ClientSession() as session:
        proxy = SynapseProxy(server, session)
        await proxy.start()
        try:
            yield proxy
        finally:
            await proxy.stop()
