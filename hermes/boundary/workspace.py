"""A folder that file operations can't leave, whatever path or link they use.

If the home of the agent is inside the folder, file operations can't use the home, because it
contains the settings and the memory.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

from hermes.types.errors import ToolFailed
from hermes.types.execution import LARGEST_FILE, FileInfo

LONGEST_PATH = 4096
"""Maximum number of characters of a path."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
# A pipe in the workspace must not make the read wait for a writer.
_READ = os.O_RDONLY | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class _Missing(ToolFailed):
    """Raised if nothing exists at the path."""


class Workspace:
    """Opens a path one component at a time and follows no link. So a link that replaces a component
    between the check and the use can't lead out of the workspace."""

    def __init__(
        self,
        root: Path,
        home: Path | None = None,
        shown: Path | None = None,
        owner: int | None = None,
    ) -> None:
        """`shown` is the path under which the model knows the folder, if this path differs from
        `root`. `owner` is the user that gets all new files and folders; None for the user of this
        process."""
        self._owner = owner
        self._root = root
        self._home = home
        self._shown = shown or root

    def read(self, path: str) -> bytes:
        descriptor = self.open(path)
        try:
            _check_regular(os.fstat(descriptor), path)
            data = _read(descriptor)
        finally:
            os.close(descriptor)
        if len(data) > LARGEST_FILE:
            raise ToolFailed(f"{path!r} is larger than {LARGEST_FILE} bytes.")
        return data

    def write(self, path: str, data: bytes, expected: bytes | None = None) -> bool:
        """Writes the whole file, atomically and durably. A file that already exists keeps its mode.
        Returns True if the file did not exist before. Raises ToolFailed if `expected` is given and
        is not the current content."""
        if len(data) > LARGEST_FILE:
            raise ToolFailed(f"That is more than {LARGEST_FILE} bytes for {path!r}; write less.")
        *above, name = self.parts(path) or ["."]
        with self._folder(above, path, make=expected is None) as folder, _explained(path):
            mode = _mode(name, path, folder)
            if expected is not None:
                _check_content(name, path, expected, folder)
            fresh = f".hermes-{secrets.token_hex(8)}"
            try:
                _write(fresh, data, mode, folder, self._owner)
                os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(fresh, dir_fd=folder)
            os.fsync(folder)
        return mode is None

    def list(self, path: str) -> Sequence[FileInfo]:
        """Returns the entries of the folder, sorted by name. The agent's home is left out."""
        home, descriptor = self.home(), self.open(path)
        found = []
        try:
            with _explained(path), os.scandir(descriptor) as entries:
                for entry in entries:
                    # An entry may be deleted while we read the folder.
                    with contextlib.suppress(FileNotFoundError):
                        known = entry.stat(follow_symlinks=False)
                        if (known.st_dev, known.st_ino) != home:
                            found.append(_info(entry.name, known))
        finally:
            os.close(descriptor)
        return sorted(found, key=lambda info: info.name)

    def stat(self, path: str) -> FileInfo | None:
        *above, name = self.parts(path) or ["."]
        try:
            with self._folder(above, path) as folder, _explained(path):
                known = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except _Missing:
            return None
        self._check_home(known, path)
        return _info(name, known)

    def remove(self, path: str) -> None:
        """Deletes a file, a symbolic link or an empty folder."""
        parts = self.parts(path)
        if not parts:
            raise ToolFailed("The workspace itself can't be removed.")
        *above, name = parts
        with self._folder(above, path) as folder, _explained(path):
            known = os.stat(name, dir_fd=folder, follow_symlinks=False)
            self._check_home(known, path)
            if stat.S_ISDIR(known.st_mode):
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
            os.fsync(folder)

    def open(self, path: str) -> int:
        """Returns a descriptor from which the file or folder can be read. The caller closes it."""
        *above, name = self.parts(path) or ["."]
        with self._folder(above, path) as folder:
            opened = _step(name, path, _READ, folder)
        try:
            self._check_home(os.fstat(opened), path)
        except ToolFailed:
            os.close(opened)
            raise
        return opened

    def home(self) -> tuple[int, int] | None:
        """Returns the device and inode of the agent's home folder, which file operations refuse to
        open. Returns None if there is no such folder."""
        try:
            known = self._home and self._home.stat()
        except FileNotFoundError:
            return None
        return (known.st_dev, known.st_ino) if known else None

    def parts(self, path: str) -> Sequence[str]:
        """Returns the components of the path below the workspace; empty for the workspace
        itself."""
        wanted = PurePosixPath(path)
        if wanted.is_absolute():
            wanted = self._relative(wanted)
        if ".." in wanted.parts:
            raise self._outside(path)
        if "\0" in path or len(path) > LONGEST_PATH:
            raise ToolFailed(f"{path[:80]!r} can't be the path of a file.")
        return wanted.parts

    def _relative(self, path: PurePosixPath) -> PurePosixPath:
        # If the configured path is a symbolic link, commands print the real path. The model may
        # have read the real path in their output, so both paths are accepted.
        for root in (self._shown, self._shown.resolve(), self._root, self._root.resolve()):
            if path.is_relative_to(root):
                return path.relative_to(root)
        raise self._outside(str(path))

    def _outside(self, path: str) -> ToolFailed:
        return ToolFailed(
            f"{path!r} is outside the workspace {self._shown}; paths are relative to it."
        )

    def _check_home(self, known: os.stat_result, path: str) -> None:
        # The folders are compared by inode, because on some systems a name has several spellings.
        if (known.st_dev, known.st_ino) == self.home():
            raise ToolFailed(
                f"{path!r} is in {self._home}, the agent's own folder: file tools can't use it."
            )

    @contextlib.contextmanager
    def _folder(self, parts: Sequence[str], path: str, *, make: bool = False) -> Iterator[int]:
        """Opens the folder with these path components. `path` is only used in error messages."""
        try:
            folder = os.open(self._root, _FOLDER | os.O_CLOEXEC)
        except OSError as error:
            raise ToolFailed(f"The workspace {self._root} can't be opened: {error}.") from error
        try:
            self._check_home(os.fstat(folder), path)
            for part in parts:
                if make:
                    _make(part, path, folder, self._owner)
                inner = _step(part, path, _FOLDER, folder)
                os.close(folder)
                folder = inner
                self._check_home(os.fstat(folder), path)
            yield folder
        finally:
            os.close(folder)


def _step(part: str, path: str, flags: int, folder: int) -> int:
    with _explained(path):
        return os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def _make(part: str, path: str, folder: int, owner: int | None) -> None:
    with _explained(path), contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=folder)
        if owner is not None:
            os.chown(part, owner, owner, dir_fd=folder, follow_symlinks=False)
        os.fsync(folder)


def _mode(name: str, path: str, folder: int) -> int | None:
    """Returns the mode of the file; None if the file does not exist yet."""
    try:
        known = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_regular(known, path)
    return stat.S_IMODE(known.st_mode)


def _check_content(name: str, path: str, expected: bytes, folder: int) -> None:
    descriptor = os.open(name, _READ | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        unchanged = _read(descriptor) == expected
    finally:
        os.close(descriptor)
    if not unchanged:
        raise ToolFailed(f"{path!r} was changed in the meantime: read it again.")


def _read(descriptor: int) -> bytes:
    """Returns the content of the file. If the file is larger than `LARGEST_FILE`, returns one byte
    more than this limit, so that the caller notices."""
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        return file.read(LARGEST_FILE + 1)


def _write(name: str, data: bytes, mode: int | None, folder: int, owner: int | None) -> None:
    descriptor = os.open(name, _NEW | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        if owner is not None:
            os.fchown(descriptor, owner, owner)
        if mode is not None:
            os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _info(name: str, known: os.stat_result) -> FileInfo:
    kind: Literal["file", "folder", "link", "other"]
    if stat.S_ISREG(known.st_mode):
        kind = "file"
    elif stat.S_ISDIR(known.st_mode):
        kind = "folder"
    else:
        kind = "link" if stat.S_ISLNK(known.st_mode) else "other"
    return FileInfo(name=name, kind=kind, size=known.st_size, modified_at=known.st_mtime)


def _check_regular(known: os.stat_result, path: str) -> None:
    if stat.S_ISREG(known.st_mode):
        return
    if stat.S_ISLNK(known.st_mode):
        raise ToolFailed(f"{path!r} is a symbolic link.")
    what = "a folder" if stat.S_ISDIR(known.st_mode) else "a pipe or a device"
    raise ToolFailed(f"{path!r} is {what}, not a file.")


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Translates errors of the operating system into messages for the model."""
    try:
        yield
    except FileNotFoundError as error:
        raise _Missing(f"{path!r}: {os.strerror(errno.ENOENT)}.") from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolFailed(f"{path!r} goes through a symbolic link.") from error
        raise ToolFailed(f"{path!r}: {os.strerror(error.errno or 0)}.") from error
    except UnicodeError as error:
        raise ToolFailed(f"{path!r} can't be the name of a file.") from error
