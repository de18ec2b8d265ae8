"""The private view that a command has of the folder with its approved script."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hermes.boundary.execution.bubblewrap import find_bubblewrap
from hermes.boundary.execution.command_place import VisibleFolder
from hermes.boundary.execution.overlay import (
    makes_overlays,
    mount_options,
    overlay_arguments,
    overlay_works,
    work_folders,
)

MOVES = """
mkdir -p deep/er && echo new > deep/er/f && mv old renamed && rm gone && rm -r emptied
echo more >> changed && ln changed linked && chmod 700 changed
"""


@pytest.fixture
def program() -> str:
    found = find_bubblewrap()
    assert found
    return found


def visible(folder: Path) -> VisibleFolder:
    return VisibleFolder(shown=Path("/shown"), real=folder)


@pytest.mark.parametrize("name", ["work", "with space", "a:b", "a,b", "back\\slash", 'quo"te', "ü"])
def test_changes_in_an_overlay_are_made_in_the_folder(
    tmp_path: Path, program: str, name: str
) -> None:
    folder = tmp_path / name
    (folder / "emptied").mkdir(parents=True)
    for file in ("old", "gone", "changed", "emptied/f"):
        (folder / file).write_text("one\n")
    (work,) = work_folders([visible(folder)], tmp_path / "root").values()
    assert overlay_works(program, folder, work)
    shown = overlay_arguments(folder, folder, work)
    command = [program, "--unshare-user", "--dev-bind", "/", "/", *shown, "--chdir", str(folder)]
    subprocess.run([*command, "--", "/bin/sh", "-ec", MOVES], check=True)
    assert {str(one.relative_to(folder)) for one in folder.rglob("*")} == {
        *("deep", "deep/er", "deep/er/f", "renamed", "changed", "linked")
    }
    assert (folder / "linked").read_text() == "one\nmore\n"
    assert (folder / "changed").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_contains_a_mount_gets_no_overlay(tmp_path: Path) -> None:
    assert work_folders([visible(Path("/")), visible(Path("/dev"))], tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_an_overlay_can_not_keep_its_work_inside_the_folder(tmp_path: Path, program: str) -> None:
    (work,) = work_folders([visible(tmp_path)], tmp_path / "root").values()
    assert not overlay_works(program, tmp_path, work)


def test_a_program_that_fails_makes_no_overlays(tmp_path: Path, program: str) -> None:
    assert makes_overlays(program)
    (work,) = work_folders([visible(tmp_path / "work")], tmp_path / "root").values()
    for other in (shutil.which("false") or "", str(tmp_path / "missing")):
        assert not makes_overlays(other)
        assert not overlay_works(other, tmp_path / "work", work)


def test_an_engine_mounts_the_same_overlay(tmp_path: Path) -> None:
    assert mount_options(Path("/work"), Path("/own/1")) == (
        "lowerdir=/own/1/empty,upperdir=/work,workdir=/own/1/work"
    )
