"""GET /v1/runs/{id}/events: a run's events from any number on, now or after a restart."""

from functools import partial

from starlette.requests import Request
from starlette.types import ASGIApp

from hermes.control.gateway import Gateway
from hermes.entry.http.auth import principal_of
from hermes.entry.http.errors import ApiError, bad_request
from hermes.entry.http.sse import EventStream, EventStreamResponse, next_or_keepalive
from hermes.streaming.sse import RunStream
from hermes.types.identity import TurnId


class RunEvents:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, request: Request) -> ASGIApp:
        run_id = str(request.path_params["run_id"])
        turn, account = TurnId(run_id.removeprefix("run_")), principal_of(request).name
        if not run_id.startswith("run_") or not await self._gateway.knows(turn, account):
            raise ApiError(404, f"There is no run {run_id!r}.", "run_not_found")
        after = _last_event_id(request)
        if request.method == "HEAD":
            return EventStreamResponse(partial(_write_head, run_id))
        return EventStreamResponse(partial(self._write, run_id, turn, after))

    async def _write(self, run_id: str, turn: TurnId, after: int, out: EventStream) -> None:
        frames = RunStream(run_id)
        with self._gateway.following(turn, after) as following:
            if after:
                for one in await following.seen():
                    frames.skip(one.seq, one.event)
            await out.start({"x-hermes-run-id": run_id})
            events = await following.next(0)
            while events or not following.ended:
                await out.send(b"".join(frames.feed(one.seq, one.event) for one in events))
                events = await next_or_keepalive(following, out)
        await out.finish()


async def _write_head(run_id: str, out: EventStream) -> None:
    await out.start({"x-hermes-run-id": run_id})
    await out.finish()


def _last_event_id(request: Request) -> int:
    given = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise bad_request("Last-Event-ID must be a number.", "invalid_header", "last-event-id")
    return int(given)
