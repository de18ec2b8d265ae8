"""Commands in a sandbox reach the network only through a proxy."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hermes.boundary.execution.levels import Level
from hermes.boundary.execution.sandbox import SandboxBackend
from hermes.boundary.execution.sandbox_network import SandboxNetwork
from hermes.testing.commands import EMPTY_ENVIRONMENT
from hermes.testing.network_checks import (
    ASK_PROXY,
    LISTED_HOSTS,
    OPEN_NETWORK,
    REFUSED_HOST,
    check_own_machine,
    check_refused_host,
)
from hermes.testing.sandbox_contract import run
from hermes.types.execution import BackendOptions, NetworkPolicy, Sandbox, SandboxScope
from hermes.types.identity import AgentId, SessionKey

SESSION = SessionKey(agent=AgentId("main"), platform="cli", kind="private", chat="1")


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
    async with opened(tmp_path, LISTED_HOSTS) as (_, sandbox):
        await check_refused_host(sandbox)


async def test_a_server_on_this_machine_can_not_be_reached_with_an_open_policy(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, OPEN_NETWORK) as (_, sandbox):
        await check_own_machine(sandbox)


async def test_without_a_policy_there_is_no_proxy(tmp_path: Path) -> None:
    async with opened(tmp_path, NetworkPolicy()) as (backend, sandbox):
        outcome = await run(sandbox, f'echo "<$http_proxy>"; {ASK_PROXY}')
        assert outcome.text.startswith("<>")
        assert "refused" in outcome.text
        assert backend.isolation.endswith("; no network")
    assert not (tmp_path / "network").exists()


async def test_a_background_command_uses_the_proxy_of_the_next_process(tmp_path: Path) -> None:
    async with opened(tmp_path, LISTED_HOSTS) as (_, sandbox):
        process = await sandbox.start(f"echo begun; read; {ASK_PROXY}")
        status = await process.status()

        async def output() -> str:
            return (await process.output()).data.decode()

        while "begun" not in await output():
            await process.wait(0.05)
    # A restarted gateway opens a new backend, which starts a new proxy.
    async with opened(tmp_path, LISTED_HOSTS) as (_, sandbox):
        process = await sandbox.process(status.id)
        await process.write(b"\n")
        assert (await process.wait(30)).code == 0
        assert REFUSED_HOST in (await process.output()).data.decode()


async def test_commands_run_without_a_network_if_the_proxy_can_not_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "network").touch()
    async with opened(tmp_path, LISTED_HOSTS) as (_, sandbox):
        assert (await run(sandbox, "echo works")).text == "works\n"
    assert "commands have no network, because the proxy can't start" in caplog.text


@pytest.mark.parametrize("policy", [LISTED_HOSTS, OPEN_NETWORK])
async def test_a_sandbox_without_network_namespaces_has_no_network(
    tmp_path: Path, policy: NetworkPolicy
) -> None:
    network = SandboxNetwork(policy, tmp_path / "network", separate=False)
    await network.start()
    assert not (tmp_path / "network").exists()
    assert network.description == "no network"
    assert network.environment() == {}
    assert network.connected(("bash",), SESSION) == ("bash",)
    (found,) = network.findings()
    assert (found.level, "no network" in found.text) == ("warning", True)
    assert network.remark(str(SESSION)) == ""
    await network.aclose()


def test_the_network_is_described_for_the_model(tmp_path: Path) -> None:
    def described(policy: NetworkPolicy) -> str:
        return SandboxNetwork(policy, tmp_path, separate=True).description

    assert described(NetworkPolicy()) == "no network"
    assert described(LISTED_HOSTS).startswith("network: only example.org, *.example.net, through")
    assert described(OPEN_NETWORK).startswith("network: public web servers, through")
    many = NetworkPolicy(mode="hosts", hosts=tuple(f"h{number}.org" for number in range(50)))
    assert "h9.org, …, through" in described(many)
    assert SandboxNetwork(NetworkPolicy(), tmp_path, separate=True).findings() == ()
    (found,) = SandboxNetwork(LISTED_HOSTS, tmp_path, separate=True).findings()
    assert found.level == "ok"
    assert found.text.startswith("Commands have a network: only example.org, *.example.net,")
