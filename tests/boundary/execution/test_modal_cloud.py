"""The `modal` backend fulfils the contracts of backends on a fake of Modal's SDK."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from msgspec.structs import replace

from hermes.boundary.execution.cloud import CloudBackend
from hermes.boundary.execution.modal_cloud import MODAL_BACKEND, ModalProvider
from hermes.testing.cloud_contract import CloudContract, FakeCloud
from hermes.testing.fake_modal import FakeModal
from hermes.testing.tool_contract import SandboxToolsContract
from hermes.types.execution import (
    BackendOptions,
    CloudAccount,
    ExecutionBackend,
    NetworkPolicy,
)


def backend_of(modal: FakeModal, options: BackendOptions) -> CloudBackend:
    provider = ModalProvider(options, lambda: modal.module)
    return CloudBackend("modal", options, provider, pauses=(0.0,))


class TestModal(SandboxToolsContract):
    @asynccontextmanager
    async def machine(self, folder: Path) -> AsyncIterator[Callable[[], ExecutionBackend]]:
        modal, options = FakeModal(folder / "modal"), TestModalCloud().options(folder)
        yield lambda: backend_of(modal, options)
        modal.stop_all()

    def workspace(self, folder: Path) -> str:
        return str(folder / "work")


class TestModalCloud(CloudContract):
    unreachable = "ServiceError"
    failures: ClassVar[Mapping[str, str]] = {
        "AuthError": "check MODAL_TOKEN_ID and MODAL_TOKEN_SECRET",
        "ResourceExhaustedError": "has reached a limit: reset sandboxes",
        "ConnectionError": "check the network",
        "ServiceError": "check the network",
        "InternalError": "was not run on the machine of Hermes instead",
    }
    networks = (
        (NetworkPolicy(), (True, None, (2048, 2048), 1.0)),
        (NetworkPolicy(mode="hosts", hosts=("a.test",)), (False, ["a.test"], (2048, 2048), 1.0)),
        (NetworkPolicy(mode="open"), (False, None, (2048, 2048), 1.0)),
    )

    @asynccontextmanager
    async def cloud(self, folder: Path) -> AsyncIterator[FakeCloud]:
        modal = FakeModal(folder / "modal")
        yield modal
        modal.stop_all()

    def backend(self, cloud: FakeCloud, options: BackendOptions) -> CloudBackend:
        assert isinstance(cloud, FakeModal)
        return backend_of(cloud, options)

    def unusable(
        self, cloud: FakeCloud, options: BackendOptions
    ) -> Sequence[tuple[CloudBackend, str]]:
        wrong = replace(options, modal=CloudAccount(key_id="ak-1", key="wrong"))
        lacking = CloudBackend("modal", options, ModalProvider(options, missing))
        return (
            (lacking, "The package modal is missing"),
            (self.backend(cloud, replace(options, modal=CloudAccount())), "Modal needs a key"),
            (self.backend(cloud, wrong), "Modal refuses the key"),
        )

    def created(self, cloud: FakeCloud) -> object:
        assert isinstance(cloud, FakeModal)
        last = cloud.created[-1]
        network = last["block_network"], last["outbound_domain_allowlist"]
        return (*network, last["memory"], last["cpu"])


def missing() -> ModuleType:
    raise ModuleNotFoundError


async def test_the_package_is_imported_only_when_it_is_used(tmp_path: Path) -> None:
    backend = MODAL_BACKEND.make(TestModalCloud().options(tmp_path))
    assert backend.isolation == "a remote sandbox of Modal; no network"
    await backend.aclose()
