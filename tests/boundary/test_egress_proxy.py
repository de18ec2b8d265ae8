"""The proxy of a sandbox connects to the allowed hosts at public addresses, and to nothing else."""

import logging
import os
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import anyio.abc
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from hermes.boundary.egress_proxy import (
    MOST_TUNNELS,
    EgressProxy,
    allows,
    is_own_address,
    may_pass,
)
from hermes.testing.sites import Site, answer, serving
from hermes.types.execution import NetworkPolicy

OPEN = NetworkPolicy(mode="open")
PAGES = {"/": answer("hello"), "/a": answer("page a")}


def only(*hosts: str) -> NetworkPolicy:
    return NetworkPolicy(mode="hosts", hosts=hosts)


class Names(AbstractResolver):
    """A name server that knows these names."""

    def __init__(self, addresses: Mapping[str, list[str]]) -> None:
        self._addresses = addresses
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        if host not in self._addresses:
            raise OSError("no such name")
        return [
            ResolveResult(
                hostname=host, host=one, port=port, family=socket.AF_INET, proto=0, flags=0
            )
            for one in self._addresses[host]
        ]

    async def close(self) -> None:
        pass


def is_test_server(address: str, port: int) -> bool:
    return address == "127.0.0.1"


class Stage:
    """A proxy, and a server at `site.example`, a name that the proxy can resolve."""

    def __init__(self, folder: Path, proxy: EgressProxy, site: Site, names: Names) -> None:
        self.proxy, self.site, self.names = proxy, site, names
        self._folder = folder

    async def connected(self, sandbox: str = "s1") -> anyio.abc.SocketStream:
        (path,) = self._folder.glob("*.sock")
        stream = await anyio.connect_unix(path)
        await stream.send(f"{sandbox}\n".encode())
        return stream

    async def ask(self, *lines: str, sandbox: str = "s1") -> str:
        """Sends a request, and returns everything that comes back."""
        async with await self.connected(sandbox) as stream:
            await stream.send("\r\n".join([*lines, "", ""]).encode())
            return await received(stream)

    async def get(self, url: str, sandbox: str = "s1") -> str:
        return await self.ask(f"GET {url} HTTP/1.1", "Host: x", sandbox=sandbox)


async def received(stream: anyio.abc.SocketStream) -> str:
    found = b""
    try:
        while True:
            found += await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return found.decode()


@asynccontextmanager
async def stage(
    folder: Path, policy: NetworkPolicy = OPEN, *, idle_seconds: float = 60.0
) -> AsyncIterator[Stage]:
    names = Names(
        {
            "site.example": ["10.0.0.1", "127.0.0.1"],
            "inside.example": ["10.0.0.1"],
            "deaf.example": ["127.0.0.1"],
        }
    )
    proxy = EgressProxy(policy, resolver=names, allowed=is_test_server, idle_seconds=idle_seconds)
    async with serving(PAGES) as site:
        await proxy.start(folder)
        try:
            yield Stage(folder, proxy, site, names)
        finally:
            await proxy.aclose()


async def test_a_page_is_fetched_from_an_allowed_address_of_the_host(tmp_path: Path) -> None:
    async with stage(tmp_path, only("site.example")) as found:
        reply = await found.get(f"http://site.example:{found.site.port}/a")
        assert reply.startswith("HTTP/1.1 200")
        assert reply.endswith("page a")
        (request,) = found.site.heard
        assert request.startswith(b"GET /a HTTP/1.1\r\n")
        assert f"Host: site.example:{found.site.port}".encode() in request


async def test_a_tunnel_passes_bytes_in_both_directions(tmp_path: Path) -> None:
    async with stage(tmp_path, only("site.example")) as found, await found.connected() as stream:
        await stream.send(f"CONNECT site.example:{found.site.port} HTTP/1.1\r\n\r\n".encode())
        assert await stream.receive() == b"HTTP/1.1 200 Connection established\r\n\r\n"
        await stream.send(b"GET /a HTTP/1.1\r\n\r\n")
        assert (await received(stream)).endswith("page a")


async def test_a_host_that_is_not_listed_is_refused_before_it_is_looked_up(tmp_path: Path) -> None:
    async with stage(tmp_path, only("other.example")) as found:
        for target in ("CONNECT site.example:443", "GET http://site.example/"):
            reply = await found.ask(f"{target} HTTP/1.1")
            assert reply.startswith("HTTP/1.1 403 ")
            assert "terminal.network does not allow site.example" in reply
        assert found.names.asked == []
        assert found.site.accepted == 0
        assert found.proxy.take_refused("s2") == []
        assert found.proxy.take_refused("s1") == ["site.example"]
        assert found.proxy.take_refused("s1") == []


async def test_a_host_that_is_refused_often_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with stage(tmp_path, only("other.example")) as found:
        for host in ("a.example", "b.example", "a.example", "A.example."):
            await found.get(f"http://{host}/")
    logged = [one.getMessage() for one in caplog.records if "may not connect" in one.getMessage()]
    assert logged == [
        f"the sandbox of s1 may not connect to {host}; terminal.network can allow the host"
        for host in ("a.example", "b.example")
    ]
    # In a terminal, warnings would appear in the middle of the conversation. Warnings are not
    # needed, because the proxy's answer tells the model about the refusal.
    assert all(one.levelno < logging.WARNING for one in caplog.records)


@pytest.mark.parametrize("policy", [OPEN, only("inside.example")])
async def test_an_address_that_is_not_public_is_refused_whatever_the_policy(
    tmp_path: Path, policy: NetworkPolicy
) -> None:
    async with stage(tmp_path, policy) as found:
        reply = await found.get("http://inside.example/")
    assert reply.startswith("HTTP/1.1 403 ")
    assert "public addresses" in reply


async def test_an_unknown_host_and_a_server_that_does_not_answer_are_named(tmp_path: Path) -> None:
    async with stage(tmp_path) as found:
        assert "there is no host unknown.example" in await found.get("http://unknown.example/")
        assert "deaf.example:9 can't be reached" in await found.get("http://deaf.example:9/")


async def test_a_request_that_is_not_for_a_proxy_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as found:
        assert (await found.ask("GET / HTTP/1.1")).startswith("HTTP/1.1 400 ")
        assert "bytes" in await found.ask("GET http://site.example/ HTTP/1.1", "A: " + 70000 * "a")


async def test_the_number_of_connections_is_limited(tmp_path: Path) -> None:
    async with stage(tmp_path) as found, AsyncExitStack() as opened:
        for _ in range(MOST_TUNNELS):
            stream = await opened.enter_async_context(await found.connected())
            target = f"CONNECT site.example:{found.site.port} HTTP/1.1"
            await stream.send(f"{target}\r\n\r\n".encode())
            assert b"200" in await stream.receive()
        reply = await found.get("http://site.example/")
        assert reply.startswith("HTTP/1.1 503 ")
        # Each sandbox has its own limit on connections, so another sandbox can still connect.
        url = f"http://site.example:{found.site.port}/"
        assert (await found.get(url, sandbox="s2")).endswith("hello")


async def test_a_connection_on_which_nothing_happens_is_closed(tmp_path: Path) -> None:
    async with stage(tmp_path, idle_seconds=0.05) as found, await found.connected() as stream:
        await stream.send(f"CONNECT site.example:{found.site.port} HTTP/1.1\r\n\r\n".encode())
        assert await stream.receive()
        assert await received(stream) == ""


async def test_a_client_that_disconnects_early_ends_only_its_own_tunnel(tmp_path: Path) -> None:
    async with stage(tmp_path) as found:
        async with await found.connected():
            pass
        async with await found.connected() as stream:
            await stream.send(f"CONNECT site.example:{found.site.port} HTTP/1.1\r\n\r\n".encode())
            assert await stream.receive()
        assert (await found.get(f"http://site.example:{found.site.port}/")).endswith("hello")


async def test_closing_the_proxy_ends_the_connections_and_removes_the_socket(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as found:
        stream = await found.connected()
        await stream.send(f"CONNECT site.example:{found.site.port} HTTP/1.1\r\n\r\n".encode())
        assert await stream.receive()
        await found.proxy.aclose()
        assert await received(stream) == ""
        await stream.aclose()
        assert list(tmp_path.iterdir()) == []


async def test_sockets_of_dead_processes_are_removed_and_others_are_kept(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "1.sock"))
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(tmp_path / "2.sock"))
        alive.listen()
        proxy = EgressProxy(OPEN)
        await proxy.start(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {"2.sock", f"{os.getpid()}.sock"}
        await proxy.aclose()


async def test_a_proxy_that_is_started_several_times_listens_once(tmp_path: Path) -> None:
    proxy = EgressProxy(OPEN)
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(proxy.start, tmp_path)
    (path,) = tmp_path.iterdir()
    async with await anyio.connect_unix(path) as stream:
        await stream.send(b"s1\nGET / HTTP/1.1\r\n\r\n")
        assert (await received(stream)).startswith("HTTP/1.1 400 ")
    await proxy.aclose()


async def test_the_path_of_the_folder_can_be_long(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    proxy = EgressProxy(OPEN)
    await proxy.start(folder)
    (path,) = folder.iterdir()
    assert path.is_socket()
    await proxy.aclose()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("example.org", True),
        ("files.example.net", True),
        ("a.b.example.net", True),
        ("example.net", False),
        ("evilexample.net", False),
        ("xexample.org", False),
        ("example.org.evil.example", False),
    ],
)
def test_a_list_names_hosts_and_domains(host: str, expected: bool) -> None:
    assert allows(only("Example.org", "*.example.net"), host) is expected
    assert allows(OPEN, host)
    assert not allows(NetworkPolicy(), host)


def test_an_address_of_this_machine_can_not_be_reached() -> None:
    assert is_own_address("127.0.0.1")
    assert not is_own_address("93.184.216.34")
    assert not is_own_address("2606:2800:220:1::1")
    assert may_pass("93.184.216.34", 443)
    assert not may_pass("93.184.216.34", 22)
    assert not may_pass("127.0.0.1", 443)


def test_a_public_address_of_this_machine_can_not_be_reached() -> None:
    def is_public(address: str, port: int) -> bool:
        return True

    assert not may_pass("127.0.0.1", 443, is_public)
    assert may_pass("93.184.216.34", 443, is_public)
