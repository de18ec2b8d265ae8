"""The command lines of ssh."""

from pathlib import Path

import pytest

from hermes.boundary.execution.ssh_connection import SshConnection
from hermes.types.errors import ToolFailed
from hermes.types.execution_clients import ClientOptions, SshOptions

FULL = SshOptions(host="build.example.org", user="bot", port=2222, key="/k", options=("A=b",))


def connection(folder: Path, ssh: SshOptions = FULL) -> SshConnection:
    program = folder / "ssh"
    program.write_text("#!/bin/sh\necho 'Permission denied' >&2\nexit 255\n")
    program.chmod(0o755)
    return SshConnection(ClientOptions(environment={"PATH": str(folder)}, ssh=ssh))


def test_the_command_line_is_exact(tmp_path: Path) -> None:
    line = connection(tmp_path).client("m", "-c", "echo 'x'", lasting=True)
    assert line[:-1] == (
        str(tmp_path / "ssh"),
        *("-S", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"),
        *("-o", "ServerAliveInterval=15", "-o", "LogLevel=ERROR"),
        *("-o", "ForwardAgent=no", "-o", "ClearAllForwardings=yes", "-o", "A=b"),
        *("-p", "2222", "-l", "bot", "-i", "/k", "-T", "build.example.org"),
    )
    assert line[-1].startswith("exec env HERMES_CALL=m python3 -I -S -c ")
    assert line[-1].endswith(""" -c 'echo '"'"'x'"'"''""")


def test_the_machine_is_named(tmp_path: Path) -> None:
    assert connection(tmp_path).target == "bot@build.example.org:2222"
    assert connection(tmp_path, SshOptions(host="h")).name == "ssh:h"


async def test_a_refused_login_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"Permission denied.*connect once by hand with `ssh"):
        await connection(tmp_path).prepare()


async def test_without_the_program_commands_are_refused() -> None:
    missing = SshConnection(ClientOptions(environment={"PATH": "/missing"}, ssh=FULL))
    with pytest.raises(ToolFailed, match="not installed"):
        await missing.prepare()
