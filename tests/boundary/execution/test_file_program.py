"""The program that reads and writes files on another machine is tested on this machine."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.boundary.execution.file_program import LOADER, file_program


def answered(root: Path, operation: str, data: bytes = b"", **fields: object) -> bytes:
    request = {"operation": operation, "root": str(root), "shown": "/w", "length": len(data)}
    line = json.dumps({**request, **fields}).encode() + b"\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOADER],
        input=file_program() + line + data,
        capture_output=True,
        check=True,
    )
    return done.stdout


def test_the_program_needs_only_the_standard_library(tmp_path: Path) -> None:
    assert answered(tmp_path / "new", "write", b"\0data", path="a/f", expected=None) == (
        b'{"result": true, "length": 0}\n'
    )
    read = answered(tmp_path / "new", "read", path="/w/a/f")
    assert read == b'{"result": null, "length": 5}\n\0data'


@pytest.mark.parametrize("path", ["../f", "/etc/passwd", "link/passwd"])
def test_the_program_stays_in_the_workspace(tmp_path: Path, path: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    assert b'"failed"' in answered(tmp_path, "read", path=path)
