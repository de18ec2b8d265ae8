"""The id of a folder that contains agents' files. The id is stored in a file in that folder.

The first process that uses a folder creates its id. Two folders have the same id only if one of
them is a copy of the other.
"""

import os
import secrets
from pathlib import Path

from hermes.state.locks import FileLock
from hermes.state.paths import Home, write_private
from hermes.state.privacy import restrict_to_owner
from hermes.types.deployment import NodeFolder
from hermes.types.errors import ConfigError, StoreUnavailable
from hermes.types.identity import FolderId

FOLDER_ID = "folder.id"
_LOCK = ".folder.lock"
_EXPECTED = "shared_folder"
"""The name of a file in `run`. It contains the id and the path of the shared folder that was used
at the last start."""


def home_folder(home: Home) -> NodeFolder:
    """Returns the home, which is the folder of this node. If the home has no folder id yet, creates
    one."""
    try:
        id = _read(home.root) or _create(home.root)
    except OSError as error:
        where = home.root / FOLDER_ID
        raise StoreUnavailable(f"{where} can't be read or written: {error}") from error
    return NodeFolder(id=id, path=str(home.root))


def shared_folder(folder: Path, home: Home) -> NodeFolder:
    """Returns the folder that the nodes share. If the folder has no id yet, creates its id.

    Raises ConfigError if the folder can't be used, or if another folder was at this path at the
    last start of a gateway.
    """
    check_shared_folder(folder)
    restrict_to_owner(folder)
    try:
        found = _read(folder)
        _check_expected(folder, found, home)
        id = found or _create(folder)
        write_private(home.run / _EXPECTED, f"{id} {folder}\n")
    except OSError as error:
        raise ConfigError(
            f"store.shared_folder: {folder} can't be used ({error.strerror}): this user must be"
            " able to write files and to lock them there"
        ) from error
    return NodeFolder(id=id, path=str(folder), shared=True)


def check_shared_folder(folder: Path) -> None:
    """Raises ConfigError if the folder does not exist or can't be written. Changes nothing."""
    if not folder.is_dir():
        raise ConfigError(
            f"store.shared_folder: there is no folder {folder}: create it, or mount it if it is on"
            " another machine"
        )
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise ConfigError(
            f"store.shared_folder: this user has no permission to write in {folder}: change its"
            " owner or its permissions"
        )


def _check_expected(folder: Path, found: FolderId | None, home: Home) -> None:
    """Raises ConfigError if the folder at this path had another id at the last start of a gateway.
    `found` is its present id; None if the folder has no id."""
    record = home.run / _EXPECTED
    try:
        id, _, path = record.read_text("utf-8").strip().partition(" ")
    except FileNotFoundError:
        return
    if path == str(folder) and id != found:
        raise ConfigError(
            f"store.shared_folder: {folder} is not the folder that was used at the last start:"
            f" mount that folder, or delete {record} if the folder was replaced on purpose"
        )


def _read(folder: Path) -> FolderId | None:
    try:
        return FolderId((folder / FOLDER_ID).read_text("utf-8").strip()) or None
    except FileNotFoundError:
        return None


def _create(folder: Path) -> FolderId:
    """Creates the id and returns it. If another process has just created an id, returns that id."""
    with FileLock(folder / _LOCK) as lock:
        lock.acquire()
        if found := _read(folder):
            return found
        id = FolderId(secrets.token_hex(16))
        write_private(folder / FOLDER_ID, f"{id}\n")
        return id
