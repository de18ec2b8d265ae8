"""The network of the commands in a sandbox."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.boundary.execution.levels import Level
from hermes.boundary.execution.sandbox import SandboxBackend
from hermes.boundary.execution.sandbox_network import SandboxNetwork
from hermes.testing.commands import EMPTY_ENVIRONMENT
from hermes.testing.sandbox_contract import run
from hermes.testing.sites import serving
from hermes.types.execution import BackendOptions, NetworkPolicy, Sandbox, SandboxScope
from hermes.types.identity import AgentId, SessionKey

SESSION = SessionKey(agent=AgentId("main"), platform="cli", kind="private", chat="1")
LISTED = NetworkPolicy(mode="hosts", hosts=("pypi.org", "*.pythonhosted.org"))
OPEN = NetworkPolicy(mode="open")


def asking(request: str) -> str:
    """Returns a shell command that sends a request to the proxy, and prints the first line of the
    answer."""
    head = f"{request} HTTP/1.1\\r\\n\\r\\n"
    return f"exec 3<>/dev/tcp/127.0.0.1/3128; printf '{head}' >&3; head -1 <&3"


ASK = asking("GET http://other.example/")
REFUSED = "HTTP/1.1 403 Forbidden: terminal.network does not allow other.example"
ADDRESSES = ("127.0.0.1", "127.0.0.2", "0.0.0.0")
REMARK = (
    "[Connections to other.example were refused. The operator can allow these hosts with the"
    " setting terminal.network.]"
)


@asynccontextmanager
async def opened(
    folder: Path, policy: NetworkPolicy, level: Level = "bubblewrap"
) -> AsyncIterator[tuple[SandboxBackend, Sandbox]]:
    """Yields a backend with this policy, and the sandbox of a session."""
    (folder / "work").mkdir(exist_ok=True)
    options = BackendOptions(
        processes=folder / "processes", environment=EMPTY_ENVIRONMENT, network=policy
    )
    backend = SandboxBackend(options, level)
    scope = SandboxScope(agent=AgentId("main"), session=SESSION, workspace=str(folder / "work"))
    try:
        yield backend, await backend.open(scope)
    finally:
        await backend.aclose()


async def test_a_command_learns_from_the_proxy_which_setting_allows_a_host(tmp_path: Path) -> None:
    async with opened(tmp_path, LISTED) as (_, sandbox):
        outcome = await run(sandbox, f"echo $https_proxy; {ASK}")
        first, second, *rest = outcome.text.splitlines()
        assert first == "http://127.0.0.1:3128"
        assert second.startswith(REFUSED)
        assert rest == [REMARK]
        assert (outcome.code, outcome.left) == (0, 0)
        assert REMARK not in (await run(sandbox, "true")).text


async def test_a_server_on_this_machine_can_not_be_reached_with_an_open_policy(
    tmp_path: Path,
) -> None:
    """The server takes the place of the gateway's API."""
    async with serving({}, host="0.0.0.0") as site, opened(tmp_path, OPEN) as (_, sandbox):
        places = [f"{host}:{site.port}" for host in own_names()]
        targets = [f"CONNECT {place}" for place in places]
        targets += [f"GET http://{place}/" for place in places]
        outcome = await run(sandbox, "; ".join(map(asking, targets)))
        replies = outcome.text.splitlines()
        assert len(replies) == len(targets)
        assert [reply for reply in replies if not reply.startswith("HTTP/1.1 403 ")] == []
        direct = [f"(exec 3<>/dev/tcp/{host}/{site.port}) 2>&1" for host in ADDRESSES]
        outcome = await run(sandbox, "; ".join(direct))
        assert outcome.code != 0
        assert site.accepted == 0


def own_names() -> list[str]:
    """Returns names and addresses of this machine."""
    found = {str(one[4][0]) for one in socket.getaddrinfo(socket.gethostname(), None)}
    written = {f"[{address}]" if ":" in address else address for address in found}
    return [*ADDRESSES, "localhost", "[::1]", "[::ffff:127.0.0.1]", "2130706433", *sorted(written)]


async def test_without_a_policy_there_is_no_proxy(tmp_path: Path) -> None:
    async with opened(tmp_path, NetworkPolicy()) as (backend, sandbox):
        outcome = await run(sandbox, f'echo "<$http_proxy>"; {ASK}')
        assert outcome.text.startswith("<>")
        assert "refused" in outcome.text
        assert backend.isolation.endswith("; no network")
    assert not (tmp_path / "network").exists()


async def test_a_background_command_uses_the_proxy_of_the_next_process(tmp_path: Path) -> None:
    async with opened(tmp_path, LISTED) as (_, sandbox):
        process = await sandbox.start(f"echo begun; read; {ASK}")
        status = await process.status()

        async def output() -> str:
            return (await process.output()).data.decode()

        while "begun" not in await output():
            await process.wait(0.05)
    # The backend of a restarted gateway has a proxy of its own.
    async with opened(tmp_path, LISTED) as (_, sandbox):
        process = await sandbox.process(status.id)
        await process.write(b"\n")
        assert (await process.wait(30)).code == 0
        assert REFUSED in (await process.output()).data.decode()


async def test_commands_run_without_a_network_if_the_proxy_can_not_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "network").touch()
    async with opened(tmp_path, LISTED) as (_, sandbox):
        assert (await run(sandbox, "echo works")).text == "works\n"
    assert "commands have no network, because the proxy can't start" in caplog.text


@pytest.mark.parametrize("policy", [LISTED, OPEN])
async def test_a_level_that_can_not_guard_the_network_has_none(
    tmp_path: Path, policy: NetworkPolicy
) -> None:
    network = SandboxNetwork(policy, "landlock", tmp_path / "network")
    await network.start()
    assert not (tmp_path / "network").exists()
    assert network.description == "no network"
    assert network.environment() == {}
    assert network.connected(("bash",), SESSION) == ("bash",)
    (found,) = network.findings()
    assert (found.level, "no network" in found.text) == ("warning", True)
    assert network.remark(SESSION) == ""
    await network.aclose()


def test_the_network_is_described_for_the_model(tmp_path: Path) -> None:
    def described(policy: NetworkPolicy) -> str:
        return SandboxNetwork(policy, "bubblewrap", tmp_path).description

    assert described(NetworkPolicy()) == "no network"
    assert described(LISTED).startswith("network: only pypi.org, *.pythonhosted.org, through")
    assert described(OPEN).startswith("network: public web servers, through")
    many = NetworkPolicy(mode="hosts", hosts=tuple(f"h{number}.org" for number in range(50)))
    assert "h9.org, …, through" in described(many)
    assert SandboxNetwork(NetworkPolicy(), "bubblewrap", tmp_path).findings() == ()
    (found,) = SandboxNetwork(LISTED, "bubblewrap", tmp_path).findings()
    assert found.level == "ok"
    assert found.text.startswith("Commands have a network: only pypi.org, *.pythonhosted.org,")
