"""A disk that is too full for the gateway to start is recognised."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.disk import ROOM_BYTES, check_disk, has_room


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yields a small file system, with twice the free space that a process needs to start."""
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={2 * ROOM_BYTES}", "tmpfs", tmp_path],
        check=False,
        capture_output=True,
    )
    if not made or made.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield tmp_path
    finally:
        subprocess.run(["umount", "-l", tmp_path], check=True)


def test_a_full_disk_has_room_again_after_a_file_was_deleted(small_disk: Path) -> None:
    assert has_room(small_disk)
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(ROOM_BYTES + 8192))
    assert not has_room(small_disk)
    ballast.unlink()
    assert has_room(small_disk)
    assert list(small_disk.iterdir()) == []


def test_a_missing_folder_does_not_count_as_a_full_disk(tmp_path: Path) -> None:
    assert has_room(tmp_path / "missing")


def test_a_small_disk_is_a_warning_and_a_full_disk_is_an_error(small_disk: Path) -> None:
    found = check_disk(small_disk / "missing" / "home")
    assert (found.level, found.text) == ("warning", f"0.0 GB are free on the disk of {small_disk}")
    (small_disk / "ballast").write_bytes(bytes(ROOM_BYTES + 8192))
    found = check_disk(small_disk)
    assert (found.level, "free some space" in found.hint) == ("error", True)


def test_a_disk_with_room_is_ok(tmp_path: Path) -> None:
    found = check_disk(tmp_path)
    assert (found.level, found.hint) == ("ok", "")
    assert list(tmp_path.iterdir()) == []
