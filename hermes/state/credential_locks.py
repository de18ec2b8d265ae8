"""Locks on the credentials of accounts. Among all homes of a user on this machine, only one process
uses a credential at a time."""

import contextlib
import os
import stat
import tempfile
import time
from pathlib import Path

import msgspec

from hermes.state.locks import FileLock
from hermes.types.errors import ConfigError
from hermes.types.identity import OwnerId
from hermes.types.value import Value

# XDG_RUNTIME_DIR is not used, because it is set in a login shell, but not in a system service of
# the same user. A shell and a service would use different folders, and would not see each other's
# locks.
_FOLDER = Path("~/.local/state/hermes/credentials")


class CredentialHolder(Value):
    """The process that holds the lock on a credential."""

    home: str
    pid: int
    account: str
    since: float
    owner: OwnerId
    """The id that the process has in the store of its home."""

    def __str__(self) -> str:
        return f"account {self.account} of the gateway with the home {self.home} (pid {self.pid})"


class CredentialLock:
    """A lock that this process holds. The kernel frees it when the process ends for any reason."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    def is_removed(self) -> bool:
        """Returns whether somebody has removed the lock file. If so, other processes can use the
        credential at the same time."""
        return self._lock.is_removed()

    def close(self) -> None:
        self._lock.close()


class CredentialLocks(Value):
    """The lock files of one user."""

    home: Path
    """The home of this process. Other processes name this home in the error that says that the
    credential is in use."""
    folder: Path | None = None
    """The folder of the lock files; None for the folder that all homes of the user share."""

    def take(
        self, key: str, account: str, owner: OwnerId
    ) -> CredentialLock | CredentialHolder | None:
        """Returns the lock if it is free. Otherwise returns the process that holds it, or None if
        that process is not known.

        Raises ConfigError if the lock files can't be used.
        """
        folder = self.folder or user_lock_folder()
        path = folder / f"{key}.lock"
        holder = CredentialHolder(
            home=str(self.home), pid=os.getpid(), account=account, since=time.time(), owner=owner
        )
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(path)
            if not lock.try_acquire():
                lock.close()
                return _holder(path)
            try:
                lock.write(msgspec.json.encode(holder))
            except OSError:
                lock.close()
                raise
        except OSError as error:
            raise ConfigError(
                f"the lock file {path} can't be written ({error.strerror}): make the folder"
                " writable for the user of the gateway"
            ) from error
        return CredentialLock(lock)


def _holder(path: Path) -> CredentialHolder | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=CredentialHolder)
    except (OSError, msgspec.DecodeError):
        # The holder has just taken the lock and has not written its name yet.
        return None


def user_lock_folder() -> Path:
    """Returns the folder of the lock files. It is the same for all homes of the user.

    If the home directory of the user is not writable, the lock files are in a private folder in the
    temporary directory.
    """
    try:
        folder = _FOLDER.expanduser()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    return _private_folder(Path(tempfile.gettempdir()) / f"hermes-{os.getuid()}")


def _private_folder(folder: Path) -> Path:
    """Creates the folder if it is missing. Raises ConfigError if another user owns it or has access
    to it."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise ConfigError(
            f"{folder} must be a folder that only its owner can use: remove it and try again"
        )
    return folder
