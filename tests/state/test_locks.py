"""File locks exclude other processes. The tests use other processes that hold locks."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hermes.state.locks import FileLock, is_held, remove_if_free

HOLDER = """
import sys
from pathlib import Path
from hermes.state.locks import FileLock

with FileLock(Path(sys.argv[1])) as lock:
    getattr(lock, sys.argv[2])()
    print("locked", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def another_process(path: Path, how: str = "acquire") -> Iterator[subprocess.Popen[str]]:
    """Starts a process that calls the lock's method `how`."""
    command = [sys.executable, "-c", HOLDER, str(path), how]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.lock"


def test_other_processes_can_not_take_a_lock_until_its_process_is_killed(path: Path) -> None:
    with FileLock(path) as lock:
        with another_process(path) as process:
            assert is_held(path)
            assert not lock.try_acquire()
            process.kill()
            process.wait()
            assert not is_held(path)
            assert lock.try_acquire()


def test_a_lock_is_free_when_its_process_ends(path: Path) -> None:
    with another_process(path) as process:
        process.communicate("\n")
        assert process.returncode == 0
        assert not is_held(path)


def test_a_wait_for_a_lock_ends_when_the_other_process_ends(path: Path) -> None:
    with FileLock(path) as lock, another_process(path) as process:
        process.kill()
        lock.acquire()
        assert is_held(path)


def test_a_wait_for_a_lock_can_have_a_time_limit(path: Path) -> None:
    with FileLock(path) as lock:
        with another_process(path):
            since = time.monotonic()
            assert not lock.acquire_within(0.05)
            assert 0.05 <= time.monotonic() - since < 5.0
        assert lock.acquire_within(5.0)


def test_a_shared_lock_excludes_exclusive_locks(path: Path) -> None:
    with FileLock(path) as lock, another_process(path, "share"):
        assert not is_held(path)
        lock.share()
        assert not lock.try_acquire()


def test_a_lock_can_become_shared_and_exclusive_again(path: Path) -> None:
    with FileLock(path) as lock:
        lock.acquire()
        lock.share()
        with another_process(path, "share"):
            assert not lock.try_acquire()
        assert lock.try_acquire()
        assert is_held(path)


def test_two_locks_of_one_process_exclude_each_other(path: Path) -> None:
    with FileLock(path) as one, FileLock(path) as other:
        assert one.try_acquire()
        assert not other.try_acquire()
        assert is_held(path)
    assert not is_held(path)


def test_checking_whether_a_lock_is_held_does_not_take_it(path: Path) -> None:
    with FileLock(path) as lock:
        assert not is_held(path)
        assert lock.try_acquire()


def test_a_child_process_does_not_keep_the_lock(path: Path) -> None:
    lock = FileLock(path)
    lock.acquire()
    with subprocess.Popen(["sleep", "60"], close_fds=False) as child:
        lock.close()
        assert not is_held(path)
        child.kill()


def test_a_missing_file_is_not_locked_and_is_not_created(path: Path) -> None:
    assert not is_held(path)
    remove_if_free(path)
    assert not path.exists()


def test_only_the_owner_can_read_the_file(path: Path) -> None:
    with FileLock(path):
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_is_removed_unless_a_process_holds_the_lock(path: Path) -> None:
    with another_process(path) as process:
        remove_if_free(path)
        assert path.exists()
        process.kill()
        process.wait()
        remove_if_free(path)
        assert not path.exists()


def test_a_lock_notices_that_its_file_was_removed_or_replaced(path: Path) -> None:
    with FileLock(path) as lock:
        assert not lock.is_removed()
        remove_if_free(path)
        assert lock.is_removed()
        path.touch()
        assert lock.is_removed()


def test_the_content_of_the_file_is_replaced_completely(path: Path) -> None:
    with FileLock(path) as lock:
        lock.write(b"a long text")
        lock.write(b"short")
        assert path.read_bytes() == b"short"
