"""The Makefile chooses a suitable Python."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(checkout: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    environ = {"PATH": os.environ["PATH"], "HOME": str(checkout)}
    return subprocess.run(
        ["make", *args], cwd=checkout, env=environ, capture_output=True, text=True, check=False
    )


def python(folder: Path, name: str, version: str) -> Path:
    """Creates a program that claims to be this version of Python."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / name
    made.write_text(f"#!/bin/sh\necho {version}\n")
    made.chmod(0o700)
    return made


def test_another_python_can_be_named(checkout: Path) -> None:
    commands = make(checkout, "-n", "PYTHON=/opt/python3.12", "run").stdout
    assert "--python /opt/python3.12 .venv" in commands
    assert "/opt/python3.12 -m venv .venv" in commands
    assert "--python python3 .venv" in make(checkout, "-n", "run").stdout


def test_an_environment_that_uv_makes_has_pip(checkout: Path) -> None:
    assert "uv venv -q --seed " in make(checkout, "-n", "run").stdout


def test_an_environment_of_another_python_is_replaced(checkout: Path) -> None:
    python(checkout / ".venv" / "bin", "python", "3 11")
    (checkout / ".venv" / ".with-local,sandbox").touch()
    newer = python(checkout / "opt", "python3.12", "3 12")
    same = python(checkout / "opt", "python3.11", "3 11")
    assert "rm -rf .venv" in make(checkout, "-n", f"PYTHON={newer}", "run").stdout
    for args in ((f"PYTHON={same}", "run"), ("run",)):
        assert "rm -rf .venv" not in make(checkout, "-n", *args).stdout


def test_the_error_for_a_missing_python_names_it(checkout: Path) -> None:
    done = make(checkout, "PYTHON=python9.9", "run")
    assert done.returncode != 0
    assert "there is no python9.9 here" in done.stdout
    assert not (checkout / ".venv").exists()
    python(checkout / ".venv" / "bin", "python", "3 11")
    assert make(checkout, "PYTHON=python9.9", "run").returncode != 0
    assert (checkout / ".venv").exists(), "an environment that works is kept"


def test_the_list_of_targets_needs_no_python(checkout: Path) -> None:
    done = make(checkout, "PYTHON=python9.9")
    assert done.returncode == 0
    assert "make run" in done.stdout
