"""The modules for a remote machine are installed there, and run with the standard library alone."""

import json
import os
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

from hermes.boundary.execution.remote_bundle import (
    MISSING,
    agent_arguments,
    agent_bundle,
    install_arguments,
)


def ran(home: Path, arguments: tuple[str, ...], data: bytes) -> bytes:
    path = f"{Path(sys.executable).parent}:{os.defpath}"
    done = subprocess.run(
        arguments,
        input=data,
        env={"HOME": str(home), "PATH": path},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def test_the_modules_are_installed_once_and_answer_a_request(tmp_path: Path) -> None:
    root, link = tmp_path / "work", tmp_path / "work/link"
    root.mkdir()
    (root / "f").write_text("x")
    link.symlink_to("f")
    requests = [
        json.dumps({"do": "read", "root": str(root), "shown": str(root), "path": path}).encode()
        for path in ("f", "link")
    ]
    assert ran(tmp_path, tuple(agent_arguments()), requests[0] + b" " * 500_000) == MISSING
    assert ran(tmp_path, tuple(install_arguments()), agent_bundle()) == b""
    assert ran(tmp_path, tuple(install_arguments()), agent_bundle()) == b""
    assert json.loads(ran(tmp_path, tuple(agent_arguments()), requests[0])) == {
        "answer": {"data": "eA=="}
    }
    refused = json.loads(ran(tmp_path, tuple(agent_arguments()), requests[1]))
    assert refused == {"failed": "'link' goes through a symbolic link."}


def test_the_bundle_has_no_settings_and_no_secrets() -> None:
    names = zipfile.ZipFile(BytesIO(agent_bundle())).namelist()
    assert "hermes/boundary/execution/remote_agent.py" in names
    assert not [name for name in names if "settings" in name]
