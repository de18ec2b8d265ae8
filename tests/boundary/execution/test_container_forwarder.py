"""The forwarder of a container, with bubblewrap in place of the container."""

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process

from hermes.boundary.egress_proxy import EgressProxy
from hermes.boundary.execution.bubblewrap import find_bubblewrap
from hermes.boundary.execution.container_network import connect_container
from hermes.testing.network_checks import ASK_PROXY, REFUSED_HOST
from hermes.testing.running import until
from hermes.testing.sites import answer, serving
from hermes.types.execution import NetworkPolicy

OPTIONS = ("--unshare-user", "--unshare-pid", "--unshare-net", "--die-with-parent")
VIEW = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")


@asynccontextmanager
async def container(command: str) -> AsyncIterator[tuple[Process, int]]:
    """Starts a process in a separate network. The process runs the command as soon as it reads a
    line. Yields the process, and the pid of the first process in the network."""
    program = find_bubblewrap()
    if program is None:
        pytest.skip("bubblewrap is not installed")
    inner = ("bash", "-c", f"echo begun; read; {command}")
    line = (program, *OPTIONS, *VIEW, "--", *inner)
    async with await anyio.open_process(line, stderr=subprocess.STDOUT) as process:
        assert process.stdout
        assert await process.stdout.receive() == b"begun\n"
        (children,) = Path(f"/proc/{process.pid}/task").glob("*/children")
        yield process, int(children.read_text())


async def output(process: Process) -> str:
    """Lets the command begin, and returns its output."""
    assert process.stdin
    assert process.stdout
    await process.stdin.send(b"\n")
    return b"".join([piece async for piece in process.stdout]).decode()


def forwarders(folder: Path) -> list[Path]:
    """Returns the processes that use the sockets in the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if os.fsencode(folder) in path.read_bytes().split(b"\0"):
                found.append(path)
        except OSError:
            continue
    return found


async def test_a_command_reaches_the_proxy_and_the_forwarder_ends_with_its_container(
    tmp_path: Path,
) -> None:
    policy = NetworkPolicy(mode="hosts", hosts=("localhost",))
    proxy = EgressProxy(policy, allowed=lambda address, port: address == "127.0.0.1")
    await proxy.start(tmp_path)
    async with serving({"/": answer("hello")}) as site:
        fetch = f"printf 'GET http://localhost:{site.port}/ HTTP/1.1\\r\\n\\r\\n' >&4; cat <&4"
        command = f"{ASK_PROXY}; exec 4<>/dev/tcp/127.0.0.1/3128; {fetch}"
        async with container(command) as (process, pid):
            await connect_container(tmp_path, "s1", pid)
            # Another process of Hermes may use the same container.
            await connect_container(tmp_path, "s2", pid)
            assert len(forwarders(tmp_path)) == 1
            told = await output(process)
    assert told.startswith(REFUSED_HOST)
    assert told.endswith("hello")
    assert proxy.take_refused("s1") == ["other.example"]
    await until(lambda: not forwarders(tmp_path))
    await proxy.aclose()
