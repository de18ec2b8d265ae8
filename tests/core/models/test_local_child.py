"""The child process serves a local model until its standard input is closed."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import msgspec
import pytest

from hermes.core.models.local_child import LISTENING, ServerOptions

pytestmark = pytest.mark.slow


def started(options: ServerOptions) -> "subprocess.Popen[bytes]":
    child = subprocess.Popen(
        [sys.executable, "-m", "hermes.core.models.local_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert child.stdin
    child.stdin.write(msgspec.json.encode(options) + b"\n")
    child.stdin.flush()
    return child


def test_the_child_serves_the_model_until_stdin_is_closed(embedded_model: Path) -> None:
    with started(ServerOptions(path=str(embedded_model), context=512, key="sesame")) as child:
        assert child.stdout
        address = child.stdout.readline().decode().strip()
        assert address.startswith(LISTENING + "http://127.0.0.1:")
        url = f"{address.removeprefix(LISTENING)}/v1/models"
        with urlopen(Request(url, headers={"Authorization": "Bearer sesame"})) as reply:
            assert json.load(reply)["data"][0]["id"] == str(embedded_model)
        said, _ = child.communicate(timeout=10)
    assert child.returncode == 0
    assert said == b""


def test_a_file_that_can_not_be_loaded_ends_the_child_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "empty.gguf").touch()
    with started(
        ServerOptions(path=str(tmp_path / "empty.gguf"), context=512, key="sesame")
    ) as child:
        said, _ = child.communicate(timeout=30)
    assert child.returncode == 1
    assert b"failed to read magic" in said.splitlines()[0]
    assert b"Traceback" not in said


def test_the_key_is_not_shown() -> None:
    assert "sesame" not in repr(ServerOptions(path="x", context=1, key="sesame"))
