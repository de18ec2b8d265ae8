"""Two refused operations on files of another machine. The contract tests of ssh cover the
operations that succeed."""

import pytest

from hermes.boundary.execution.ssh_connection import SshConnection
from hermes.boundary.execution.ssh_files import SshFiles
from hermes.types.errors import ToolFailed
from hermes.types.execution import LARGEST_FILE
from hermes.types.execution_clients import ClientOptions


async def test_a_file_that_is_too_large_is_not_sent() -> None:
    files = SshFiles(SshConnection(ClientOptions()), "w", "/w")
    with pytest.raises(ToolFailed, match="write less"):
        await files.write("f", b"x" * (LARGEST_FILE + 1))


async def test_an_operation_does_not_fall_back_to_this_machine() -> None:
    files = SshFiles(SshConnection(ClientOptions()), "w", "/w")
    with pytest.raises(ToolFailed, match="ssh_host"):
        await files.read("f")
