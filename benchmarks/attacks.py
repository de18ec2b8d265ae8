"""Clients that attack the gateway in several ways at the same time, until they are cancelled."""

import asyncio
import contextlib
import itertools
import socket
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from benchmarks.client import Answer, ask_once, encode
from benchmarks.load import PATH, SESSION_HEADER
from benchmarks.stalls import read_slowly, small_socket

READERS = 20
READING_SECONDS = 35
IDLE_CONNECTIONS = 100
IDLE_SECONDS = 70.0
WRONG_KEYS = 30
UPLOAD_BYTES = 9_000_000
REPLAYS = 10
GARBAGE = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\nzz",
    b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
)


class Attacks:
    """Attacks of every kind. Each kind has a client of its own, which pauses between two
    attacks."""

    def __init__(self, port: int, key: str) -> None:
        self.count = 0
        """Number of attacks so far."""
        self._port = port
        self._headers = {"Authorization": f"Bearer {key}"}
        self._numbers = itertools.count(1)

    async def run(self) -> None:
        """Runs the attacks until the task is cancelled."""
        kinds: Sequence[tuple[float, Callable[[], Awaitable[None]]]] = (
            (5.0, self._huge_header),
            (5.0, self._slow_readers),
            (20.0, self._wrong_keys),
            (5.0, self._idle_connections),
            (25.0, self._large_request),
            (15.0, self._replays),
            (10.0, self._garbage),
        )
        async with asyncio.TaskGroup() as group:
            for pause, kind in kinds:
                group.create_task(self._repeat(pause, kind))

    async def _repeat(self, pause: float, attack: Callable[[], Awaitable[None]]) -> None:
        while True:
            # The benchmark `soak` kills the gateway now and then. So a lost connection is no error.
            with contextlib.suppress(OSError):
                await attack()
                self.count += 1
            await asyncio.sleep(pause)

    async def _huge_header(self) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ")
            for _ in range(1000):
                writer.write(b"x" * 10_000)
                await writer.drain()
        finally:
            writer.close()

    async def _slow_readers(self) -> None:
        body = _body("tokens:60000", stream=True)
        plain = _body("tokens:60000", stream=False)
        readers: list[socket.socket] = []
        loop = asyncio.get_running_loop()
        try:
            for number in range(READERS):
                reader = await small_socket(self._port)
                readers.append(reader)
                chosen = body if number % 2 else plain
                await loop.sock_sendall(reader, encode("POST", PATH, self._headers, chosen))
            for _ in range(READING_SECONDS):
                for reader in readers:
                    read_slowly(reader)
                await asyncio.sleep(1.0)
        finally:
            for reader in readers:
                reader.close()

    async def _wrong_keys(self) -> None:
        for number in range(WRONG_KEYS):
            headers = {"Authorization": f"Bearer guess-{number}"}
            await ask_once(self._port, encode("POST", PATH, headers, _body("tokens:1")), 5.0)

    async def _idle_connections(self) -> None:
        idle: list[socket.socket] = []
        try:
            for _ in range(IDLE_CONNECTIONS):
                idle.append(await small_socket(self._port))
            await asyncio.sleep(IDLE_SECONDS)
        finally:
            for one in idle:
                one.close()

    async def _large_request(self) -> None:
        number = next(self._numbers)
        session = {SESSION_HEADER: f"large-{number}"} if number % 2 else {}
        body = _body("tokens:5 " + "word " * (UPLOAD_BYTES // 5))
        await ask_once(self._port, encode("POST", PATH, {**self._headers, **session}, body), 30.0)

    async def _replays(self) -> None:
        key = {"Idempotency-Key": f"replayed-{next(self._numbers)}"}
        request = encode("POST", PATH, {**self._headers, **key}, _body("tokens:60000"))
        first = await ask_once(self._port, request, 60.0)
        run = first.body.partition(b'"chatcmpl-')[2].partition(b'"')[0].decode()
        events = encode("GET", f"/v1/runs/run_{run}/events", self._headers)
        async with asyncio.TaskGroup() as group:
            for number in range(REPLAYS):
                group.create_task(self._ask(events if number % 2 else request))

    async def _garbage(self) -> None:
        for data in GARBAGE:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            try:
                writer.write(data)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(2.0):
                        await reader.read(1000)
            finally:
                writer.close()

    async def _ask(self, request: bytes) -> Answer:
        return await ask_once(self._port, request, 60.0)


def _body(text: str, **fields: object) -> bytes:
    said = [{"role": "user", "content": text}]
    return msgspec.json.encode({"model": "hermes-agent", "messages": said, **fields})
