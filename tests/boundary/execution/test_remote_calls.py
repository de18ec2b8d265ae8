"""Requests to a remote machine are answered, or fail with a reason."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes.boundary.execution.remote_calls import RemoteCalls
from hermes.testing.remote_host import HostMachine
from hermes.types.errors import ToolFailed
from hermes.types.value import Value


class Read(Value):
    data: bytes


class OldMachine(HostMachine):
    """A machine whose Python is missing."""

    async def execute(self, arguments: Sequence[str], data: bytes, seconds: float) -> bytes:
        return b"sh: python3: not found"


async def test_a_request_is_answered(tmp_path: Path) -> None:
    calls = RemoteCalls(HostMachine(tmp_path), "/shown")
    written = {"path": "f", "data": "eA==", "expected": None}
    await calls.call("write", Value, written)
    assert (await calls.call("read", Read, {"path": "/shown/f"})).data == b"x"
    with pytest.raises(ToolFailed, match="No such file"):
        await calls.call("read", Read, {"path": "missing"})


async def test_an_image_without_python_is_named(tmp_path: Path) -> None:
    calls = RemoteCalls(OldMachine(tmp_path), "")
    with pytest.raises(ToolFailed, match=r"contain Python 3\.11 .* 'sh: python3: not found'"):
        await calls.call("read", Read, {"path": "f"})
