"""A process is alive while it holds its lock. The lock is freed when the process ends for any
reason."""

import subprocess
import sys
from pathlib import Path

from hermes.state.sqlite.owner_locks import (
    OwnerLock,
    dead_among,
    is_alive,
    lock_path,
    sweep_up,
    unclean,
)
from hermes.types.identity import OwnerId

HOLDER = """
import sys
from pathlib import Path
from hermes.state.sqlite.owner_locks import OwnerLock

with OwnerLock(Path(sys.argv[1])) as lock:
    print(lock.id, flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> tuple[subprocess.Popen[str], OwnerId]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    return process, OwnerId(process.stdout.readline().strip())


def test_an_owner_is_alive_while_the_context_is_open(tmp_path: Path) -> None:
    with OwnerLock(tmp_path / "run") as lock:
        assert is_alive(tmp_path / "run", lock.id)
        assert lock_path(tmp_path / "run", lock.id).stat().st_mode & 0o777 == 0o600
    assert not is_alive(tmp_path / "run", lock.id)
    assert list((tmp_path / "run").iterdir()) == []
    assert not is_alive(tmp_path, OwnerId("nobody"))


def test_killing_a_process_frees_its_lock(tmp_path: Path) -> None:
    process, owner = holder(tmp_path)
    with process:
        assert is_alive(tmp_path, owner)
        assert unclean(tmp_path) == []
        process.kill()
    assert not is_alive(tmp_path, owner)
    assert unclean(tmp_path) == [lock_path(tmp_path, owner)]
    with OwnerLock(tmp_path) as lock:
        assert dead_among(tmp_path, [lock.id, owner]) == [owner]


def test_a_process_that_ends_cleanly_leaves_no_file(tmp_path: Path) -> None:
    process, owner = holder(tmp_path)
    process.communicate("")
    assert not is_alive(tmp_path, owner)
    assert list(tmp_path.iterdir()) == []


def test_only_the_lock_files_of_dead_processes_are_removed(tmp_path: Path) -> None:
    process, dead = holder(tmp_path)
    with process:
        process.kill()
    with OwnerLock(tmp_path) as lock:
        sweep_up(tmp_path)
        assert is_alive(tmp_path, lock.id)
        assert not lock_path(tmp_path, dead).exists()
    sweep_up(tmp_path)


def test_the_locked_file_is_the_file_that_other_processes_see(tmp_path: Path) -> None:
    """Another process may remove a lock file after its owner has opened the file and before the
    owner has locked it. Even then, the owner must not look dead."""
    lock = OwnerLock(tmp_path)
    stale = lock_path(tmp_path, lock.id)
    stale.touch()
    sweep_up(tmp_path)
    with lock:
        assert is_alive(tmp_path, lock.id)
