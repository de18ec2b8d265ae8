"""Only one process can lock a credential. The tests use other processes that hold locks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.state.credential_locks import (
    CredentialHolder,
    CredentialLock,
    CredentialLocks,
)
from hermes.testing.rows import US
from hermes.types.errors import ConfigError

KEY = "0123abcd"
HOLDER = """
import sys
from pathlib import Path
from hermes.state.credential_locks import CredentialLocks

locks = CredentialLocks(home=Path("/homes/work"), folder=Path(sys.argv[1]))
lock = locks.take(sys.argv[2], "chat", "them")
print("taken", flush=True)
sys.stdin.readline()
"""


def taken(locks: CredentialLocks, key: str = KEY) -> CredentialLock:
    lock = locks.take(key, "chat.b", US)
    assert isinstance(lock, CredentialLock)
    return lock


def test_a_lock_of_another_process_names_its_holder_and_is_free_after_a_kill(
    tmp_path: Path,
) -> None:
    folder, pipe = tmp_path / "locks", subprocess.PIPE
    locks = CredentialLocks(home=tmp_path, folder=folder)
    command = [sys.executable, "-c", HOLDER, str(folder), KEY]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "taken\n"
        holder = locks.take(KEY, "chat.b", US)
        assert isinstance(holder, CredentialHolder)
        assert (holder.home, holder.pid, holder.account) == ("/homes/work", process.pid, "chat")
        assert holder.owner == "them"
        taken(locks, "another").close()
        process.kill()
    taken(locks).close()


def test_a_holder_without_a_name_is_unknown(tmp_path: Path) -> None:
    locks = CredentialLocks(home=tmp_path, folder=tmp_path)
    lock = taken(locks)
    (tmp_path / f"{KEY}.lock").write_text("")
    assert locks.take(KEY, "chat", US) is None
    assert not lock.is_removed()
    lock.close()


def test_only_the_user_can_read_the_files(tmp_path: Path) -> None:
    locks = CredentialLocks(home=tmp_path, folder=tmp_path / "locks")
    taken(locks).close()
    assert (tmp_path / "locks").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "locks" / f"{KEY}.lock").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_can_not_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    locks = CredentialLocks(home=tmp_path, folder=tmp_path / "file" / "locks")
    with pytest.raises(ConfigError, match=r"the lock file .*/file/locks/.* can't be written"):
        locks.take(KEY, "chat", US)


FOLDER = "from hermes.state.credential_locks import user_lock_folder; print(user_lock_folder())"


def folder_with(**environ: str) -> "subprocess.CompletedProcess[str]":
    """Runs a process that prints its lock folder, with these environment variables. Returns the
    result."""
    command = [sys.executable, "-c", FOLDER]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_all_homes_of_a_user_have_the_same_folder(tmp_path: Path) -> None:
    expected = f"{tmp_path}/.local/state/hermes/credentials\n"
    for home in ("one", "two"):
        found = folder_with(HOME=str(tmp_path), HERMES_HOME=home, XDG_RUNTIME_DIR=f"/run/{home}")
        assert found.stdout == expected


def test_a_user_without_a_home_directory_has_a_private_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    environ = {"HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    private = tmp_path / f"hermes-{os.getuid()}"
    assert folder_with(**environ).stdout == f"{private}\n"
    assert private.stat().st_mode & 0o777 == 0o700
    private.chmod(0o777)
    assert "must be a folder that only its owner can use" in folder_with(**environ).stderr
