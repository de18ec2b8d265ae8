"""A proxy that only checks a key and copies bytes. Its cost is the least that a gateway in Python
can cost."""

import sys
from collections.abc import AsyncIterator

import aiohttp
import uvloop
from aiohttp import web


class Proxy:
    def __init__(self, upstream: str, key: str) -> None:
        self._url = f"{upstream}/chat/completions"
        self._authorization = f"Bearer {key}"
        self._session: aiohttp.ClientSession | None = None

    async def connected(self, app: web.Application) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            yield

    async def complete(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Authorization") != self._authorization:
            raise web.HTTPUnauthorized
        assert self._session is not None
        body = await request.read()
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._url, data=body, headers=headers) as answer:
            kind = answer.content_type
            if kind != "text/event-stream":
                whole = await answer.read()
                return web.Response(body=whole, status=answer.status, content_type=kind)
            copy = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
            await copy.prepare(request)
            async for part in answer.content.iter_any():
                await copy.write(part)
            await copy.write_eof()
            return copy


async def health(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


def main(port: int, upstream: str, key: str) -> None:
    proxy = Proxy(upstream, key)
    app = web.Application()
    app.cleanup_ctx.append(proxy.connected)
    app.router.add_post("/v1/chat/completions", proxy.complete)
    app.router.add_get("/health", health)
    loop = uvloop.new_event_loop()
    web.run_app(
        app, host="127.0.0.1", port=port, backlog=4096, access_log=None, print=None, loop=loop
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
