"""The log file is private and its size is limited, even with several writers."""

import shutil
import stat
from pathlib import Path

import pytest

from hermes.entry.cli.log_file import REOPEN_SECONDS, LogFile

LINE = b"x" * 99 + b"\n"


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += REOPEN_SECONDS
        return self.now


def sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir())}


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "hermes.log"
    path.touch(0o644)
    file = LogFile(path, 1000, 3)
    file.write(LINE)
    file.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == LINE


def test_only_a_number_of_full_files_is_kept(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "hermes.log", 1000, 2)
    for _ in range(45):
        file.write(LINE)
    assert sizes(tmp_path) == {"hermes.log": 500, "hermes.log.1": 1000, "hermes.log.2": 1000}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in tmp_path.iterdir())
    file.close()


def test_without_backups_a_full_file_is_emptied(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "hermes.log", 1000, 0)
    for _ in range(11):
        file.write(LINE)
    assert sizes(tmp_path) == {"hermes.log": 100}
    file.close()


def test_after_a_restart_the_log_continues_in_the_same_file(tmp_path: Path) -> None:
    for _ in range(12):
        file = LogFile(tmp_path / "hermes.log", 1000, 1)
        file.write(LINE)
        file.close()
    assert sizes(tmp_path) == {"hermes.log": 200, "hermes.log.1": 1000}


def test_two_processes_share_the_file_and_lose_no_line(tmp_path: Path) -> None:
    one, other = (LogFile(tmp_path / "hermes.log", 1000, 9, clock=Clock()) for _ in range(2))
    for _ in range(20):
        one.write(LINE)
        other.write(LINE)
    assert sum(sizes(tmp_path).values()) == 40 * len(LINE)
    assert sizes(tmp_path)["hermes.log"] <= 1000
    one.close()
    other.close()


def test_a_full_file_is_rotated_by_one_of_two_processes(tmp_path: Path) -> None:
    one, other = (LogFile(tmp_path / "hermes.log", 1000, 9, clock=lambda: 0.0) for _ in range(2))
    for _ in range(5):
        one.write(LINE)
        other.write(LINE)
    # First one writer fills the file and rotates it, and then the other writer notices that the
    # file is full.
    for file in (one, other):
        for _ in range(6):
            file.write(LINE)
    found = sizes(tmp_path)
    assert sum(found.values()) == 22 * len(LINE)
    assert sum(size < 1000 for size in found.values()) == 1
    one.close()
    other.close()


def test_a_folder_that_was_removed_is_created_again(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "logs" / "hermes.log", 1000, 3, clock=Clock())
    file.write(LINE)
    shutil.rmtree(tmp_path / "logs")
    file.write(LINE)
    assert sizes(tmp_path / "logs") == {"hermes.log": 100}
    assert stat.S_IMODE((tmp_path / "logs").stat().st_mode) == 0o700
    file.close()


def test_a_file_that_was_moved_away_is_created_again(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "hermes.log", 1000, 3, clock=Clock())
    file.write(LINE)
    (tmp_path / "hermes.log").rename(tmp_path / "moved")
    file.write(LINE)
    assert sizes(tmp_path) == {"hermes.log": 100, "moved": 100}
    file.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "hermes.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"[Ss]ymbolic|loop"):
        LogFile(tmp_path / "hermes.log", 1000, 3).write(LINE)
    assert not (tmp_path / "elsewhere").exists()


def test_a_write_that_failed_is_tried_again_later(tmp_path: Path) -> None:
    file = LogFile(tmp_path / "home" / "logs" / "hermes.log", 1000, 3)
    with pytest.raises(FileNotFoundError):
        file.write(LINE)
    (tmp_path / "home" / "logs").mkdir(parents=True)
    file.write(LINE)
    assert sizes(tmp_path / "home" / "logs") == {"hermes.log": 100}
    file.close()
