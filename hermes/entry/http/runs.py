"""GET /v1/runs/{id}/events: sends the events of a run that follow a given event, even after a
restart of the gateway."""

from collections.abc import Sequence
from functools import partial

from starlette.requests import Request
from starlette.types import ASGIApp

from hermes.control.following import Following
from hermes.control.gateway import Gateway
from hermes.entry.http.auth import principal_of
from hermes.entry.http.errors import ApiError, bad_request
from hermes.entry.http.long_answers import AnswerPlace, send_answer
from hermes.entry.http.sse import EventStream, EventStreamResponse, next_or_keepalive
from hermes.streaming.outline import AnswerOutline
from hermes.streaming.sse import RunStream
from hermes.types.events import Envelope, TurnFinished
from hermes.types.identity import TurnId


class RunEvents:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, request: Request) -> ASGIApp:
        run_id, turn = await known_run(self._gateway, request)
        after = _last_event_id(request)
        if request.method == "HEAD":
            return EventStreamResponse(partial(_write_head, run_id))
        return EventStreamResponse(partial(self._write, run_id, turn, after))

    async def _write(self, run_id: str, turn: TurnId, after: int, out: EventStream) -> None:
        frames = RunStream(run_id)
        with self._gateway.following(turn, after) as following:
            await out.start({"x-hermes-run-id": run_id})
            events = await following.next(0)
            while events or not following.ended:
                parts = _rendered(events, frames)
                events = ()  # frees the memory before a slow client reads
                for part in parts:
                    if isinstance(part, bytes):
                        await out.send(part)
                    else:
                        await _send_end(*part, frames, following, out)
                events = await next_or_keepalive(following, out)
        await out.finish()


async def known_run(gateway: Gateway, request: Request) -> tuple[str, TurnId]:
    """Returns the id of the run that the path names, and its turn. Raises ApiError if there is no
    such run, or if it belongs to another key."""
    run_id = str(request.path_params["run_id"])
    turn, account = TurnId(run_id.removeprefix("run_")), principal_of(request).name
    if not run_id.startswith("run_") or not await gateway.knows(turn, account):
        raise ApiError(404, f"There is no run {run_id!r}.", "run_not_found")
    return run_id, turn


def _rendered(
    events: Sequence[Envelope], frames: RunStream
) -> list[bytes | tuple[int, TurnFinished]]:
    """Returns the frames of the events. A TurnFinished event has no frame yet, because its frame
    contains the whole answer. So the number of this event and the event itself are returned
    instead."""
    parts: list[bytes | tuple[int, TurnFinished]] = []
    sent: list[bytes] = []
    for one in events:
        if isinstance(one.event, TurnFinished):
            parts += (b"".join(sent), (one.seq, one.event))
            sent.clear()
        else:
            sent.append(frames.feed(one.seq, one.event))
    return [*parts, b"".join(sent)]


async def _send_end(
    seq: int, event: TurnFinished, frames: RunStream, following: Following, out: EventStream
) -> None:
    """Sends the last frame. It contains the whole answer, so this function reads the events of the
    turn again, page by page."""
    outline, last = AnswerOutline(), 0
    while page := await following.earlier(last, seq):
        for one in page:
            outline.feed(one.seq, one.event)
        last = page[-1].seq
    head, tail = frames.end(seq, event, outline.usage)
    await out.send(head)
    if tail:
        place = AnswerPlace(after=0, upto=seq, segments=outline.segments())
        await send_answer(following, place, out)
        await out.send(tail)


async def _write_head(run_id: str, out: EventStream) -> None:
    await out.start({"x-hermes-run-id": run_id})
    await out.finish()


def _last_event_id(request: Request) -> int:
    if given := request.headers.get("last-event-id"):
        if not _is_event_id(given):
            raise bad_request("Last-Event-ID must be a number.", "invalid_header", "last-event-id")
        return int(given)
    given = request.query_params.get("after") or "0"
    if not _is_event_id(given):
        raise bad_request("The query parameter 'after' must be a number.", param="after")
    return int(given)


def _is_event_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 18
