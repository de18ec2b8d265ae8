"""Sends requests that are too large, too deeply nested or endless, and measures their cost until
the gateway refuses them."""

import asyncio
import contextlib
import time
import zlib
from collections.abc import Iterator

import msgspec

from benchmarks.crowds import probed
from benchmarks.load import PATH
from benchmarks.model import Behaviour
from benchmarks.sizes import Sizes
from benchmarks.stage import KEY, Stage

AT_ONCE = 4
"""Number of clients that send the same request at the same time."""
PART = b"x" * 65_536
SECONDS = 20.0
"""Seconds after which a client stops waiting for a response."""


class HostileRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request that must be refused."""

    name: str
    statuses: tuple[int, ...]
    """The HTTP statuses with which the gateway may refuse the request."""
    headers: tuple[str, ...] = ()
    body: bytes = b""
    repeat: int = 1
    """Number of times that `body` is repeated to make the body of the request."""
    chunked: bool = False

    def parts(self) -> Iterator[bytes]:
        """Yields the bytes of the request, in pieces."""
        size = "Transfer-Encoding: chunked"
        if not self.chunked:
            size = f"Content-Length: {len(self.body) * self.repeat}"
        lines = (f"POST {PATH} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {KEY}", size)
        yield "\r\n".join((*lines, *self.headers, "", "")).encode()
        for _ in range(self.repeat):
            yield b"%x\r\n%b\r\n" % (len(self.body), self.body) if self.chunked else self.body


def hostile_requests(scale: float) -> list[HostileRequest]:
    """Returns all hostile requests. With a scale of 1, the largest request has a gigabyte."""
    gigabyte, depth = int(scale * 2**30 / len(PART)), int(scale * 1_000_000)
    bomb = zlib.compressobj(wbits=31)
    zipped = b"".join(bomb.compress(bytes(2**20)) for _ in range(int(scale * 1000) + 1))
    parts = [{"type": "text", "text": "x"}] * 10_000
    said = [{"role": "user", "content": parts}] * 100
    deep = b'{"model":"main","messages":' + b"[" * depth
    return [
        HostileRequest(name="1 GB body", statuses=(413,), body=PART, repeat=gigabyte),
        HostileRequest(
            name="1 GB in chunks", statuses=(413,), body=PART, repeat=gigabyte, chunked=True
        ),
        HostileRequest(name="JSON, a million deep", statuses=(400,), body=deep),
        HostileRequest(
            name="message of 100 MB", statuses=(413,), body=PART, repeat=max(200, gigabyte // 10)
        ),
        HostileRequest(
            name="a million parts",
            statuses=(400, 413),
            body=msgspec.json.encode({"model": "main", "messages": said}),
        ),
        HostileRequest(
            name="zip bomb",
            statuses=(400, 415),
            headers=("Content-Encoding: gzip",),
            body=zipped + bomb.flush(),
        ),
        HostileRequest(name="1 MB header", statuses=(431,), headers=(f"X: {'x' * 2**20}",)),
    ]


async def hostile(stage: Stage, sizes: Sizes) -> None:
    """Sends each hostile request from several clients at the same time."""
    await stage.restart("hostile")
    await stage.behave(Behaviour())
    await stage.settle(stage.ours)
    slowest, wrong = 0.0, 0

    async def attack() -> None:
        nonlocal slowest, wrong
        for one in hostile_requests(sizes.hostile):
            async with asyncio.TaskGroup() as group:
                sent = [group.create_task(_refused(stage.ours.port, one)) for _ in range(AT_ONCE)]
            for status, seconds in (task.result() for task in sent):
                slowest = max(slowest, seconds)
                if status not in one.statuses:
                    wrong += 1
                    stage.record.fail(f"{one.name}: status {status} after {seconds:.1f} s")

    seen = await probed(stage, stage.ours, attack)
    put = stage.record.put
    put("hostile.memory", seen.rss_growth)
    put("hostile.seconds", slowest)
    put("hostile.wrong", wrong)


async def _refused(port: int, one: HostileRequest) -> tuple[int, float]:
    """Sends the request. Returns the status of the answer (0 if no answer comes), and the seconds
    from the start of the request to the first line of the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began, status = time.perf_counter(), b""
    sending = asyncio.ensure_future(_send(writer, one))
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(SECONDS):
            status = await reader.readline()
    seconds = time.perf_counter() - began
    sending.cancel()
    with contextlib.suppress(asyncio.CancelledError, OSError):
        await sending
    writer.close()
    words = status.split()
    return int(words[1]) if len(words) > 1 else 0, seconds


async def _send(writer: asyncio.StreamWriter, one: HostileRequest) -> None:
    for part in one.parts():
        writer.write(part)
        await writer.drain()
