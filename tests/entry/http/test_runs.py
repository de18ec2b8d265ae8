"""A client can read the events of a run again: from any event on, while the run is going on, and
after a restart."""

import socket
import time
from pathlib import Path
from urllib.parse import quote

import anyio
import anyio.lowlevel
import msgspec
import psutil
import pytest
from msgspec.structs import replace

from hermes.entry.http.connections import ClientLimits
from hermes.entry.http.descriptors import raise_descriptor_limit
from hermes.testing.bare import request
from hermes.testing.gateway_process import gateway_process
from hermes.testing.model import FakeModel
from hermes.testing.running import until, until_rows
from hermes.testing.scripted import is_complete
from hermes.testing.service import OPTIONS, SERVICE_KEY, Service, serving
from hermes.types.identity import TurnId

Event = tuple[int, str, dict[str, object]]


def events(body: bytes) -> list[Event]:
    found = []
    for frame in body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
        if "data" in fields:
            data = msgspec.json.decode(fields["data"], type=dict[str, object])
            found.append((int(fields["id"]), fields["event"], data))
    return found


def text(found: list[Event]) -> str:
    return "".join(str(data["delta"]) for _, name, data in found if name == "message.delta")


async def run_of(service: Service, said: str, **headers: str) -> str:
    messages = [{"role": "user", "content": said}]
    body = msgspec.json.encode({"model": "main", "stream": True, "messages": messages})
    status, found, _ = await request(service.port, "POST", "/v1/chat/completions", body, **headers)
    assert status == 200
    return found["x-hermes-run-id"]


async def read_run(service: Service, run: str, after: int = 0) -> list[Event]:
    status, _, body = await request(
        service.port, "GET", f"/v1/runs/{run}/events", last_event_id=str(after)
    )
    assert status == 200
    return events(body)


async def test_a_finished_run_can_be_read_from_every_event_on(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        run = await run_of(service, 'tool:append{"token":"x"} tokens:30 delay:0.002')
        whole = await read_run(service, run)
        tails = [await read_run(service, run, seq) for seq, _, _ in whole]
    assert [name for _, name, _ in whole if name.startswith("tool")] == [
        "tool.started",
        "tool.completed",
    ]
    assert is_complete(text(whole))
    for position, tail in enumerate(tails, 1):
        assert tail == whole[position:]


async def test_a_reader_can_continue_in_the_middle_of_a_stored_piece(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as service:
        run = await run_of(service, "tokens:30 delay:0.002")
        whole = await read_run(service, run)
        piece = whole[0][0]
        parts = [await read_run(service, run, piece - back) for back in range(1, 8)]
    tails = [text(part) for part in parts]
    assert all(text(whole).endswith(tail) for tail in tails)
    assert sorted(set(tails), key=len) == tails
    assert all(part[-1][2]["output"] == text(whole) for part in parts)


async def test_a_run_is_read_live_while_it_runs(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        found: list[Event] = []

        async def follow() -> None:
            turns = await until_turn(service)
            found.extend(await read_run(service, f"run_{turns}"))

        async with anyio.create_task_group() as group:
            group.start_soon(run_of_quietly, service, "ttft:0.2 tokens:20 delay:0.01")
            group.start_soon(follow)
    assert is_complete(text(found))
    assert found[-1][1] == "run.completed"
    assert found[-1][2]["output"] == text(found)


async def run_of_quietly(service: Service, said: str) -> None:
    await run_of(service, said)


async def until_turn(service: Service) -> TurnId:
    with anyio.fail_after(5):
        found = await until_rows(service.gateway._store, "select id from turns")
    return TurnId(found[0][0])


async def test_a_run_outlives_the_process_that_began_it(tmp_path: Path) -> None:
    """After the restart, an event tells readers to discard the text of the interrupted model call.
    The text after this event is the whole answer."""
    async with serving(tmp_path) as service:
        with anyio.move_on_after(0.5):
            await run_of(service, "tokens:60 delay:0.02", x_hermes_session_id="s")
        turn = await until_turn(service)
        cut = service.gateway._hub.get(turn)
        assert cut is not None
        last = cut.seq
    async with serving(tmp_path) as service:
        found = await read_run(service, f"run_{turn}", last)
    assert found[0][1] == "hermes.segment.discarded"
    assert int(str(found[0][2]["from_seq"])) <= last < found[0][0]
    assert is_complete(text(found))
    assert found[-1][2]["output"] == text(found)


async def test_a_run_of_another_key_and_a_run_that_does_not_exist_are_not_found(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as service:
        for run in ("run_nope", "nope", "run_"):
            status, _, _ = await request(service.port, "GET", f"/v1/runs/{run}/events")
            assert status == 404


async def test_the_error_for_an_invalid_event_id_names_the_header_or_the_parameter(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as service:
        path = f"/v1/runs/{await run_of(service, 'hello')}/events"
        for value in ("-1", "x", "9" * 40, "١"):
            encoded = value.encode().decode("latin-1")
            status, _, body = await request(service.port, "GET", path, last_event_id=encoded)
            assert status == 400
            assert b'"param":"last-event-id","code":"invalid_header"' in body
            status, _, body = await request(service.port, "GET", f"{path}?after={quote(value)}")
            assert status == 400
            assert b'"param":"after","code":"invalid_request"' in body


async def test_a_reader_that_stalls_is_disconnected_and_can_continue_without_a_gap(
    tmp_path: Path,
) -> None:
    options = replace(OPTIONS, limits=ClientLimits(unread=0.5))
    async with serving(tmp_path, options) as service:
        body = (
            b'{"model":"main","stream":true,"messages":[{"role":"user","content":"tokens:60000"}]}'
        )
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1"
            f"\r\nauthorization: Bearer {SERVICE_KEY}"
            f"\r\nx-hermes-session-id: s\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", service.port))
            slow.sendall(head.encode() + body)
            slow.setblocking(False)
            turn = await until_turn(service)
            begun = time.monotonic()
            log = service.gateway._hub.get(turn)
            await until(lambda: log is None or log.readers == 0, within=20)
            assert time.monotonic() - begun < 15
            got = drained(slow)
        await until(lambda: service.gateway.busy == 0, within=20)
        seen = [int(line[4:]) for line in got.split(b"\n") if line.startswith(b"id: ")]
        rest = await read_run(service, f"run_{turn}", seen[-1])
        whole = await read_run(service, f"run_{turn}")
    assert len(seen) > 1
    assert text(whole).endswith(text(rest))
    assert is_complete(text(whole))


def drained(slow: socket.socket) -> bytes:
    data = b""
    slow.settimeout(1)
    try:
        while part := slow.recv(65536):
            data += part
    except OSError:
        pass
    return unchunked_lines(data)


def unchunked_lines(data: bytes) -> bytes:
    """Returns the complete server-sent events in the data. The last event is left out, because it
    may be cut off."""
    return data.rpartition(b"\n\n")[0]


LONG_TOKENS = 120_000
"""The number of words in an answer of about a megabyte."""


async def stored_run(port: int) -> str:
    """Runs a turn with a long answer to its end. Returns the URL path of its events."""
    said = f"tokens:{LONG_TOKENS}".encode()
    body = b'{"model":"main","messages":[{"role":"user","content":"%b"}]}' % said
    status, headers, answer = await request(port, "POST", "/v1/chat/completions", body)
    assert status == 200
    assert len(answer) > 800_000
    return f"/v1/runs/{headers['x-hermes-run-id']}/events"


@pytest.mark.slow
async def test_many_readers_of_a_long_run_get_all_events_and_do_not_delay_other_requests(
    tmp_path: Path,
) -> None:
    async with FakeModel() as model, gateway_process(tmp_path, model.base_url) as gateway:
        path = await stored_run(gateway.port)
        bodies: list[bytes] = []
        slowest = 0.0

        async def read() -> None:
            bodies.append((await request(gateway.port, "GET", path))[2])

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(read)
            while len(bodies) < 20:
                begun = time.monotonic()
                assert (await request(gateway.port, "GET", "/health"))[0] == 200
                slowest = max(slowest, time.monotonic() - begun)
    assert len(set(bodies)) == 1
    found = events(bodies[0])
    assert is_complete(text(found))
    assert found[-1][2]["output"] == text(found)
    assert slowest < 10


@pytest.mark.slow
async def test_slow_readers_cost_little_memory(tmp_path: Path) -> None:
    raise_descriptor_limit()
    readers: list[socket.socket] = []
    async with FakeModel() as model, gateway_process(tmp_path, model.base_url) as gateway:
        path = await stored_run(gateway.port)
        process = psutil.Process(gateway.pid)
        before, descriptors = process.memory_info().rss, process.num_fds()
        asked = (
            f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {SERVICE_KEY}\r\n\r\n"
        )
        try:
            for _ in range(150):
                reader = socket.socket()
                reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                # With the larger segments of the loopback interface, the kernel would buffer
                # megabytes for each reader.
                reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)
                readers.append(reader)
                reader.connect(("127.0.0.1", gateway.port))
                reader.sendall(asked.encode())
            await until(lambda: process.num_fds() >= descriptors + len(readers), within=30)
            peak = 0
            for _ in range(100):
                assert (await request(gateway.port, "GET", "/health"))[0] == 200
                peak = max(peak, process.memory_info().rss)
            # The run has about 1 MB. A copy in memory for each reader would take 150 MB.
            assert peak - before < 40_000_000
        finally:
            for reader in readers:
                reader.close()
