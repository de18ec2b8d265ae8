"""Measures a thousand readers that read a byte per second, and reconnect whenever the gateway
disconnects them."""

import asyncio
import contextlib
import re
import socket
import time

import msgspec

from benchmarks.client import ask_once, encode
from benchmarks.crowds import probed
from benchmarks.load import Load, Plan, percentile
from benchmarks.model import TOKEN
from benchmarks.replays import HEADERS, MEDIUM, finished_run
from benchmarks.sizes import Sizes
from benchmarks.stage import Stage
from benchmarks.stalls import small_socket

RESUMED = 20
"""Number of slow readers that read their remaining events at full speed at the end, so that the
benchmark can check that no event is missing."""
OTHERS = Plan(count=100_000, concurrency=2, seconds=10.0)
_DELTA = re.compile(rb'"delta":"([^"]*)"')
_ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)


class SlowReader:
    """A reader that remembers the last event that it has read."""

    def __init__(self, port: int, path: str) -> None:
        self.cuts = 0
        self._port = port
        self._path = path
        self._socket: socket.socket | None = None
        self._read = b""

    @property
    def last(self) -> int:
        """Number of the last event that was read completely."""
        return max((int(one) for one in _ID.findall(self._whole)), default=0)

    @property
    def tokens(self) -> int:
        """Number of the model's tokens in the events that were read completely."""
        return tokens_of(self._whole)

    @property
    def _whole(self) -> bytes:
        return self._read.rpartition(b"\n\n")[0]

    def request(self) -> bytes:
        return encode("GET", self._path, {**HEADERS, "Last-Event-ID": str(self.last)})

    async def read_slowly(self) -> None:
        """Reads a byte, or connects again if there is no connection."""
        if self._socket is None:
            self._socket = await small_socket(self._port)
            await asyncio.get_running_loop().sock_sendall(self._socket, self.request())
            return
        # A slow reader needs an hour to read the bytes in its buffer, and a read notices a lost
        # connection only after these bytes. SO_ERROR reports the loss at once.
        if self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.cuts += 1
            self.close()
            return
        with contextlib.suppress(BlockingIOError):
            self._read += self._socket.recv(1)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


async def lasting_readers(stage: Stage, sizes: Sizes) -> None:
    """Measures the memory that the slow readers cost, and how much slower the turns of other
    clients become because of them."""
    await stage.restart("lasting-readers")
    path = await finished_run(stage, MEDIUM)
    before = await stage.load(stage.ours, OTHERS)
    others = Load(stage.behaviour.tokens)
    readers = [SlowReader(stage.ours.port, path) for _ in range(sizes.slow_replays)]

    async def read() -> None:
        end = time.perf_counter() + sizes.reader_minutes * 60
        async with asyncio.TaskGroup() as group:
            group.create_task(_talk(stage, others, end))
            while time.perf_counter() < end:
                for reader in readers:
                    await reader.read_slowly()
                await asyncio.sleep(1.0)

    try:
        seen = await probed(stage, stage.ours, read)
    finally:
        for reader in readers:
            reader.close()
    gaps = 0
    for reader in readers[:RESUMED]:
        gaps += await _gaps(stage, reader)
    put = stage.record.put
    put("lasting.memory", seen.rss_growth)
    put("lasting.cuts", sum(reader.cuts for reader in readers))
    put("lasting.others", percentile(others.totals, 0.99) / percentile(before.totals, 0.99))
    put("lasting.gaps", gaps)


async def _talk(stage: Stage, others: Load, end: float) -> None:
    while (left := end - time.perf_counter()) > 0:
        plan = msgspec.structs.replace(OTHERS, seconds=min(10.0, left))
        others.join(await stage.load(stage.ours, plan))


async def _gaps(stage: Stage, slow: SlowReader) -> int:
    """Lets the reader read its remaining events at full speed. Returns the number of tokens that
    are then still missing."""
    answer = await ask_once(stage.ours.port, slow.request(), 60.0)
    return abs(MEDIUM.tokens - slow.tokens - tokens_of(answer.body))


def tokens_of(events: bytes) -> int:
    """Returns the number of the model's tokens in the events. A token may begin in one event and
    end in the next."""
    return b"".join(_DELTA.findall(events)).count(TOKEN)
