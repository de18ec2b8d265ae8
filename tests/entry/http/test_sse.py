"""A client gets the server-sent events in order and in small pieces, and comments during pauses."""

from pathlib import Path

import anyio
from starlette.types import Message

from hermes.entry.http.responses import SLICE
from hermes.entry.http.sse import (
    EventStream,
    EventStreamResponse,
    next_or_keepalive,
)
from hermes.streaming.sse import KEEPALIVE
from hermes.testing.asgi import call, http_scope
from hermes.testing.running import held, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.events import TextDelta
from hermes.types.identity import OWNER, Principal, Source, TurnId
from hermes.types.messages import Accepted, Asked, MessageEvent, Origin, UserMessage


async def test_a_stream_has_headers_and_frames_and_an_end() -> None:
    async def write(out: EventStream) -> None:
        await out.start({"x-hermes-run-id": "run_1"})
        await out.send(b"data: 1\n\n")
        await out.send(b"")
        await out.send(b"data: 2\n\n")
        await out.finish()

    response = await call(EventStreamResponse(write), http_scope())
    assert response.status == 200
    assert response.headers == {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
        "x-hermes-run-id": "run_1",
    }
    assert response.body == b"data: 1\n\ndata: 2\n\n"


async def test_much_data_is_sent_in_slices() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    await EventStream(send).send(b"x" * (2 * SLICE + 1))
    assert [len(message["body"]) for message in sent] == [SLICE, SLICE, 1]
    assert all(message["more_body"] for message in sent)


async def test_the_last_data_is_sent_together_with_the_end_of_the_body() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    for size in (0, 1, SLICE, SLICE + 1):
        await EventStream(send).finish(b"x" * size)
    assert [(len(message["body"]), message["more_body"]) for message in sent] == [
        (0, False),
        (1, False),
        (SLICE, False),
        (SLICE, True),
        (1, False),
    ]


async def test_comments_are_sent_while_nothing_happens(tmp_path: Path) -> None:
    frames: list[bytes] = []

    async def send(message: Message) -> None:
        frames.append(message["body"])

    event = anyio.Event()
    async with running(tmp_path, [], ScriptedModel([held(event, says("done"))])) as gateway:
        receipt = await gateway.accept(
            MessageEvent(
                dedupe_key="1",
                source=Source(
                    platform="api", account="a", chat_kind="private", chat_id="s", user_id="k"
                ),
                origin=Origin(trigger="api", principal=Principal(name="default", person=OWNER)),
                received_at=0.0,
                body=Asked(messages=(UserMessage(text="hi"),)),
            )
        )
        assert isinstance(receipt, Accepted)
        with gateway.following(TurnId(receipt.id)) as following:
            async with anyio.create_task_group() as group:

                async def let_go() -> None:
                    await until(lambda: len(frames) > 1)
                    event.set()

                group.start_soon(let_go)
                out = EventStream(send)
                events = await next_or_keepalive(following, out, every=0.01)
    assert set(frames) == {KEEPALIVE}
    assert isinstance(events[0].event, TextDelta)
