"""Tests the calls of docker and podman with small programs that stand in for them."""

from pathlib import Path

import pytest

from hermes.boundary.execution.container_engine import ContainerEngine
from hermes.types.errors import ToolFailed


def program(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def engine(folder: Path, wanted: str = "") -> ContainerEngine:
    return ContainerEngine(wanted, {"PATH": str(folder)})


async def test_the_first_engine_that_answers_is_used(tmp_path: Path) -> None:
    program(tmp_path, "docker", "echo no daemon >&2; exit 1")
    podman = program(tmp_path, "podman", 'echo "$@"')
    found = engine(tmp_path)
    assert await found.find() == ""
    assert found.program == str(podman)
    assert found.is_podman
    answer = await found.call("ps", "a b")
    assert (answer.code, answer.output) == (0, "ps a b\n")


async def test_the_settings_choose_the_engine(tmp_path: Path) -> None:
    program(tmp_path, "docker", "exit 0")
    other = program(tmp_path, "other", "exit 0")
    for wanted in ("other", str(other)):
        found = engine(tmp_path, wanted)
        assert await found.find() == ""
        assert found.program == str(other)
        assert not found.rootless_podman


async def test_an_engine_that_does_not_work_is_explained(tmp_path: Path) -> None:
    program(tmp_path, "docker", "echo no daemon >&2; exit 1")
    found = engine(tmp_path)
    assert await found.find() == "docker does not work: no daemon; podman is not installed"
    with pytest.raises(ToolFailed, match=r"no daemon.*Install Docker or Podman"):
        await found.call("ps")


async def test_a_program_that_can_not_be_started_is_explained(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text("#!/missing\n")
    (tmp_path / "docker").chmod(0o755)
    assert "docker does not work" in await engine(tmp_path, "docker").find()
