"""Measures what readers that hardly read cost the gateway and its other clients."""

import asyncio
import socket
import time

from benchmarks.load import Load, Plan, Target, percentile
from benchmarks.model import Behaviour
from benchmarks.sizes import Sizes
from benchmarks.stage import Stage

LARGE = Behaviour(tokens=800, padding=1000, delay=0.015)
"""Makes the model write an answer that is larger than the buffers between the gateway and a
reader."""
BUFFER = 4096
"""Size of a reader's receive buffer in bytes."""
SEGMENT = 1460
"""Size of a TCP segment in bytes, as on a network between machines."""


async def readers(stage: Stage, sizes: Sizes) -> None:
    """Measures streams whose readers read a byte per second, while other clients are served."""
    await stage.restart("stalled")
    await stage.behave(LARGE)
    target = stage.ours
    before, began = target.tree.usage().rss, time.perf_counter()
    stalled = [await _open(target) for _ in range(sizes.readers)]
    try:
        while (await stage.counts()).calls < sizes.readers:
            assert time.perf_counter() - began < 30, "not every reader's turn began"
            await asyncio.sleep(0.05)
        # This behaviour applies only to new requests. The slow streams, which are already running,
        # keep the behaviour `LARGE`.
        await stage.behave(Behaviour())
        others, most = Load(stage.behaviour.tokens), before
        while (left := began + sizes.reading - time.perf_counter()) > 0:
            for one in stalled:
                read_slowly(one)
            others.join(await stage.load(target, Plan(count=20, seconds=min(1.0, left))))
            most = max(most, target.tree.usage().rss)
            await asyncio.sleep(max(0.0, min(1.0, left) - 0.2))
        held = target.tree.established(target.port)
    finally:
        for one in stalled:
            one.close()
    put = stage.record.put
    put("readers.memory", most - before)
    put("readers.others", percentile(others.totals, 0.99))
    put("readers.left", held)


async def _open(target: Target) -> socket.socket:
    """Opens a connection with a small receive buffer, and requests a streamed answer on it. Returns
    the connection."""
    reader = await small_socket(target.port)
    await asyncio.get_running_loop().sock_sendall(reader, target.request(stream=True))
    return reader


async def small_socket(port: int) -> socket.socket:
    """Connects to the port with a socket whose receive buffer has only `BUFFER` bytes."""
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
    # The loopback interface has large segments, with which the kernel would buffer megabytes of the
    # gateway's output.
    reader.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
    reader.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(reader, ("127.0.0.1", port))
    except BaseException:
        reader.close()
        raise
    return reader


def read_slowly(reader: socket.socket) -> None:
    """Reads one byte, if a byte has arrived. Closes the socket if the other side has closed the
    connection."""
    try:
        reader.recv(1)
    except BlockingIOError:
        return
    except OSError:
        reader.close()
