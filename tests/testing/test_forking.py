"""A forked `hermes` behaves like a new process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes.testing.forking import run_forked


def run_new(
    arguments: list[str], environ: Mapping[str, str], stdin: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "hermes", *arguments],
        env=environ,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "stdin", "names"),
    [
        (["--version"], "", {}),
        (["statsu"], "", {}),
        (["config", "set", "agent.max_turns", "none"], "", {}),
        (["config", "get", "timezone"], "", {"HERMES_TIMEZONE": "Europe/Berlin"}),
        (["approvals", "explain", "--json"], '"rm -rf /"\n', {}),
        (["config", "path"], "", {"HERMES_HOME": "a home"}),
    ],
    ids=["version", "misspelt", "wrong value", "environment", "input", "working directory"],
)
def test_a_forked_process_has_the_same_result_as_a_new_process(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    stdin: str,
    names: Mapping[str, str],
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"PATH": os.environ["PATH"], "HERMES_HOME": str(tmp_path / "home"), **names}
    forked = run_forked(arguments, environ, stdin)
    new = run_new(arguments, environ, stdin)
    assert forked.returncode == new.returncode
    assert (forked.stdout, forked.stderr) == (new.stdout, new.stderr)
