"""Tests the cases of a remote sandbox that the contract tests do not cover."""

from pathlib import Path

import pytest

from hermes.boundary.execution.remote_calls import RemoteCalls
from hermes.boundary.execution.remote_sandbox import RemoteSandbox
from hermes.testing.cloud_contract import CloudContract
from hermes.testing.remote_host import HostMachine
from hermes.types.errors import ToolFailed
from hermes.types.execution import LARGEST_FILE


def sandbox_in(folder: Path) -> RemoteSandbox:
    contract = CloudContract()
    calls = RemoteCalls(HostMachine(folder), "")
    return RemoteSandbox(contract.scope(folder), calls, contract.options(folder), "modal:a1")


async def test_no_shell_is_opened(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="opens no shell"):
        await sandbox_in(tmp_path).shell()


async def test_a_large_file_is_not_sent(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="write less"):
        await sandbox_in(tmp_path).write("f", b"x" * (LARGEST_FILE + 1))
    assert not (tmp_path / "work").exists()


async def test_a_name_that_is_not_utf_8_is_listed(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/f\udcff").write_text("")
    assert [one.name for one in await sandbox_in(tmp_path).list(".")] == ["f\udcff"]
