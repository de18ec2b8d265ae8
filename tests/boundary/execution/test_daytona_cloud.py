"""The `daytona` backend fulfils the contracts of backends on a fake of Daytona's SDK."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest
from msgspec.structs import replace

from hermes.boundary.execution.cloud import CloudBackend
from hermes.boundary.execution.daytona_cloud import DAYTONA_BACKEND, DaytonaProvider
from hermes.testing.cloud_contract import CloudContract, FakeCloud
from hermes.testing.fake_daytona import FakeDaytona
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.types.errors import ToolFailed
from hermes.types.execution import (
    BackendOptions,
    CloudAccount,
    ExecutionBackend,
    NetworkPolicy,
)


def backend_of(daytona: FakeDaytona, options: BackendOptions) -> CloudBackend:
    provider = DaytonaProvider(options, lambda: daytona.module)
    return CloudBackend("daytona", options, provider, pauses=(0.0,))


class TestDaytona(SandboxToolsContract):
    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        daytona, options = FakeDaytona(folder / "daytona"), TestDaytonaCloud().options(folder)
        yield lambda: backend_of(daytona, options)
        daytona.stop_all()

    def workspace(self, folder: Path) -> str:
        return str(folder / "work")


class TestDaytonaCloud(CloudContract):
    unreachable = "DaytonaBadGatewayError"
    failures: ClassVar[Mapping[str, str]] = {
        "DaytonaAuthenticationError": "check DAYTONA_API_KEY",
        "DaytonaRateLimitError": "has reached a limit: wait a minute",
        "DaytonaConnectionError": "check the network",
        "DaytonaBadGatewayError": "check the network",
        "DaytonaInternalServerError": "was not run on the machine of Hermes instead",
    }
    networks = (
        (NetworkPolicy(), (True, None, 2, 3, 1)),
        (
            NetworkPolicy(mode="hosts", hosts=("a.test", "b.test")),
            (False, "a.test,b.test", 2, 3, 1),
        ),
        (NetworkPolicy(mode="open"), (False, None, 2, 3, 1)),
    )

    @asynccontextmanager
    async def cloud(self, folder: Path) -> AsyncIterator[FakeCloud]:
        daytona = FakeDaytona(folder / "daytona")
        yield daytona
        daytona.stop_all()

    def backend(self, cloud: FakeCloud, options: BackendOptions) -> CloudBackend:
        assert isinstance(cloud, FakeDaytona)
        return backend_of(cloud, options)

    def unusable(
        self, cloud: FakeCloud, options: BackendOptions
    ) -> Sequence[tuple[CloudBackend, str]]:
        wrong = replace(options, daytona=CloudAccount(key="wrong"))
        lacking = CloudBackend("daytona", options, DaytonaProvider(options, missing))
        return (
            (lacking, "The package daytona is missing"),
            (self.backend(cloud, replace(options, daytona=CloudAccount())), "Daytona needs a key"),
            (self.backend(cloud, wrong), "Daytona refuses the key"),
        )

    def created(self, cloud: FakeCloud) -> object:
        assert isinstance(cloud, FakeDaytona)
        last, size = cloud.created[-1], cloud.created[-1].resources
        network = last.network_block_all, last.domain_allow_list
        return (*network, size.memory, size.disk, size.cpu)


def missing() -> ModuleType:
    raise ModuleNotFoundError


async def test_the_client_is_closed(tmp_path: Path) -> None:
    daytona = FakeDaytona(tmp_path / "daytona")
    backend = backend_of(daytona, TestDaytonaCloud().options(tmp_path))
    await backend.check()
    assert daytona.clients == 1
    await backend.aclose()
    assert daytona.clients == 0


@pytest.mark.parametrize(
    ("state", "works"), [("stopping", True), ("error", False), ("destroyed", False)]
)
async def test_only_a_broken_or_destroyed_sandbox_can_not_be_used_again(
    tmp_path: Path, state: str, works: bool
) -> None:
    daytona = FakeDaytona(tmp_path / "daytona")
    contract = TestDaytonaCloud()
    backend = backend_of(daytona, contract.options(tmp_path))
    await (await backend.open(contract.scope(tmp_path))).write("f", b"x")
    (name,) = daytona.running
    daytona.sandboxes[name].state = state
    later = await backend_of(daytona, contract.options(tmp_path)).open(contract.scope(tmp_path))
    if works:
        assert await later.read("f") == b"x"
    else:
        with pytest.raises(ToolFailed):
            await later.read("f")
    daytona.stop_all()


async def test_the_package_is_imported_only_when_it_is_used(tmp_path: Path) -> None:
    backend = DAYTONA_BACKEND.make(TestDaytonaCloud().options(tmp_path))
    assert backend.isolation == "a remote sandbox of Daytona; no network"
    await backend.aclose()
