"""Measures the cost of expensive clients: readers of long runs, slow readers, and clients that send
large requests."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable

import msgspec

from benchmarks.client import Client, ask_once, encode
from benchmarks.crowds import Probed, probed
from benchmarks.load import PATH, SESSION_HEADER, percentile
from benchmarks.model import Behaviour
from benchmarks.sizes import Sizes
from benchmarks.stage import KEY, Stage
from benchmarks.stalls import read_slowly, small_socket

LONG = Behaviour(tokens=8_000, padding=1000)
"""Makes the model write an answer of 8 MB."""
MEDIUM = Behaviour(tokens=1_000, padding=1000)
"""Makes the model write an answer of 1 MB."""
UPLOAD_BYTES = 9_000_000
END = b"event: run.completed"
HEADERS = {"Authorization": f"Bearer {KEY}"}


async def replays(stage: Stage, sizes: Sizes) -> None:
    """Measures the cost of many clients that read one long, finished run at full speed."""
    await stage.restart("replayed")
    path = await finished_run(stage, LONG)

    async def read() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(sizes.replays):
                group.create_task(_read(stage, path))

    seen = await _watched(stage, read)
    put = stage.record.put
    put("replays.memory", seen.rss_growth)
    put("replays.seconds", seen.seconds)
    put("replays.health", percentile(seen.delays, 0.99))


async def slow_replays(stage: Stage, sizes: Sizes) -> None:
    """Measures the cost of many clients that read a run at a byte per second, until the gateway
    disconnects them."""
    await stage.restart("replayed-slowly")
    path = await finished_run(stage, MEDIUM)
    await _read_slowly(stage, sizes, "slow_replays", encode("GET", path, HEADERS))


async def slow_answers(stage: Stage, sizes: Sizes) -> None:
    """Measures the cost of many clients that read a plain answer at a byte per second, until the
    gateway disconnects them."""
    await stage.restart("answered-slowly")
    await stage.behave(MEDIUM)
    said = [{"role": "user", "content": "hello"}]
    body = msgspec.json.encode({"model": "hermes-agent", "messages": said})
    request = encode("POST", PATH, {**HEADERS, "Idempotency-Key": "one"}, body)
    answer = await ask_once(stage.ours.port, request, 60.0)
    assert answer.good(MEDIUM.tokens), answer.told()
    await stage.behave(Behaviour())
    await _read_slowly(stage, sizes, "slow_answers", request)


async def _read_slowly(stage: Stage, sizes: Sizes, name: str, request: bytes) -> None:
    """Lets many clients send the request and read one byte of the answer per second. Records the
    memory that these clients cost, under `name`."""
    readers: list[socket.socket] = []

    async def read() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(sizes.slow_replays):
            reader = await small_socket(stage.ours.port)
            readers.append(reader)
            await loop.sock_sendall(reader, request)
        end = time.perf_counter() + sizes.reading
        while time.perf_counter() < end:
            for reader in readers:
                read_slowly(reader)
            await asyncio.sleep(1.0)

    try:
        seen = await _watched(stage, read)
        left = stage.ours.tree.established(stage.ours.port)
    finally:
        for reader in readers:
            reader.close()
    put = stage.record.put
    put(f"{name}.memory", seen.rss_growth)
    put(f"{name}.health", percentile(seen.delays, 0.99))
    put(f"{name}.left", left)


async def uploads(stage: Stage, sizes: Sizes) -> None:
    """Measures requests of nearly the maximum size, and how much they delay the turns of other
    clients."""
    await stage.restart("uploaded")
    await stage.behave(Behaviour())
    for name, messages in (("one", 1), ("many", sizes.upload_messages), ("session", 1)):
        text = "word " * (UPLOAD_BYTES // 5 // messages)
        said = [{"role": "user", "content": text}] * messages
        body = msgspec.json.encode({"model": "hermes-agent", "messages": said})
        turns: list[float] = []

        async def send(name: str = name, body: bytes = body) -> None:
            for number in range(sizes.uploads):
                session = {SESSION_HEADER: f"upload-{number}"} if name == "session" else {}
                request = encode("POST", PATH, {**HEADERS, **session}, body)
                answer = await ask_once(stage.ours.port, request, 60.0)
                assert answer.status, answer.told()

        async def send_beside_others(
            send: Callable[[], Awaitable[None]] = send, turns: list[float] = turns
        ) -> None:
            async with asyncio.TaskGroup() as group:
                others = group.create_task(_talk(stage, turns))
                await send()
                others.cancel()

        seen = await _watched(stage, send_beside_others)
        stage.record.put(f"uploads.{name}", max(seen.delays))
        stage.record.put(f"uploads.{name}_turns", max(turns))


async def _talk(stage: Stage, turns: list[float]) -> None:
    """Runs one small turn after another, and records the milliseconds that each took."""
    client = Client(stage.ours.port)
    try:
        while True:
            answer = await client.ask(stage.ours.request())
            assert answer.good(stage.behaviour.tokens), answer.told()
            turns.append(answer.total * 1000)
            await asyncio.sleep(0.005)
    finally:
        client.close()


async def _watched(stage: Stage, work: Callable[[], Awaitable[None]]) -> Probed:
    await stage.settle(stage.ours)
    return await probed(stage, stage.ours, work)


async def finished_run(stage: Stage, behaviour: Behaviour) -> str:
    """Starts a run and waits for its end. Returns the URL path of its events."""
    await stage.behave(behaviour)
    answer = await ask_once(stage.ours.port, stage.ours.request(), 60.0)
    assert answer.good(behaviour.tokens), answer.told()
    turn = answer.body.partition(b'"chatcmpl-')[2].partition(b'"')[0].decode()
    await stage.behave(Behaviour())
    return f"/v1/runs/run_{turn}/events"


async def _read(stage: Stage, path: str) -> None:
    """Reads the events of a run to the end, and discards them."""
    reader, writer = await asyncio.open_connection("127.0.0.1", stage.ours.port)
    try:
        writer.write(encode("GET", path, {**HEADERS, "Connection": "close"}))
        size, tail, ended = 0, b"", False
        while part := await reader.read(65_536):
            size += len(part)
            ended = ended or END in tail + part
            tail = part[-len(END) :]
        assert ended, "a run was not read to its end"
        assert size > LONG.tokens * LONG.padding * 2, "the answer was incomplete"
    finally:
        writer.close()
