"""The backend for remote sandboxes refuses handles of other backends, and describes the network."""

from pathlib import Path

import pytest

from hermes.boundary.execution.cloud import CloudBackend, described_network
from hermes.boundary.execution.modal_cloud import ModalProvider
from hermes.testing.cloud_contract import CloudContract
from hermes.testing.fake_modal import FakeModal
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.types.execution import NetworkPolicy


async def test_a_handle_of_another_backend_ends_no_command(tmp_path: Path) -> None:
    modal, contract = FakeModal(tmp_path / "modal"), CloudContract()
    options = contract.options(tmp_path)
    backend = CloudBackend("modal", options, ModalProvider(options, lambda: modal.module))
    sandbox, observer = await backend.open(contract.scope(tmp_path)), RecordedCommand()
    await sandbox.run("echo", observer, seconds=30.0)
    name, id, command = observer.handles[0].split(":")
    assert name == "modal"
    for handle in (f"daytona:{id}:{command}", f"modal:x:{command}", f"modal:{id}:../x", "modal"):
        assert not await backend.end(handle)
    modal.stop_all()
    assert not await backend.end(observer.handles[0])
    assert list(modal.running) == []


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        (NetworkPolicy(), "no network"),
        (NetworkPolicy(mode="hosts", hosts=("a.test", "b.test")), "network: a.test, b.test"),
        (NetworkPolicy(mode="open"), "an open network"),
    ],
)
def test_the_network_is_described(policy: NetworkPolicy, text: str) -> None:
    assert described_network(policy) == text
