"""A folder that file tools cannot leave, whatever path or link they are given.

Where the agent's own home is inside of it, that is left out: there are its settings and its memory.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

import anyio.to_thread

from hermes.types.errors import ToolFailed
from hermes.types.profile import AgentProfile

MOST = 10_000_000
"""Bytes of a file that is read or written whole."""
PATH = 4096
"""Characters of a path."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY
# A pipe in the workspace must not make the read wait for a writer.
_READ = os.O_RDONLY | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


class Workspace:
    """Opens one component of a path after the other and follows no link: nothing can be swapped
    for a way out between a check and the use."""

    def __init__(self, root: Path, home: Path | None = None) -> None:
        self._root = root
        self._home = home

    @classmethod
    def of(cls, profile: AgentProfile) -> "Workspace":
        return cls(Path(profile.workspace), Path(profile.home) if profile.home else None)

    async def read_text(self, path: str) -> str:
        data = await anyio.to_thread.run_sync(self.read_bytes, path, abandon_on_cancel=True)
        if b"\0" in data[:8192]:
            raise ToolFailed(f"{path!r} is not a text file.")
        return data.decode("utf-8", errors="replace")

    async def write_text(self, path: str, text: str) -> bool:
        """Puts the text in the file's place, with the folders it needs; whether it is new."""
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise ToolFailed(f"The text for {path!r} is not valid Unicode: {error}.") from error
        return await anyio.to_thread.run_sync(self.write_bytes, path, data)

    def read_bytes(self, path: str) -> bytes:
        descriptor = self.open(path)
        try:
            _check_regular(os.fstat(descriptor), path)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(MOST + 1)
        finally:
            os.close(descriptor)
        if len(data) > MOST:
            raise ToolFailed(f"{path!r} is larger than {MOST} bytes.")
        return data

    def write_bytes(self, path: str, data: bytes) -> bool:
        """Replaces the file at once and durably, and keeps its mode; whether it is new."""
        if len(data) > MOST:
            raise ToolFailed(f"That is more than {MOST} bytes for {path!r}; write less.")
        *above, name = self.parts(path) or ["."]
        with self._folder(above, path, make=True) as folder, _explained(path):
            mode = _mode(name, path, folder)
            fresh = f".hermes-{secrets.token_hex(8)}"
            try:
                _write(fresh, data, mode, folder)
                os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(fresh, dir_fd=folder)
            os.fsync(folder)
        return mode is None

    def open(self, path: str) -> int:
        """A descriptor of the file or folder to read from, which the caller closes."""
        *above, name = self.parts(path) or ["."]
        with self._folder(above, path) as folder:
            opened = _step(name, path, _READ, folder)
        try:
            self._check_home(opened, path)
        except ToolFailed:
            os.close(opened)
            raise
        return opened

    def home(self) -> tuple[int, int] | None:
        """The device and the number of the folder that is left out; None where there is none."""
        try:
            known = self._home and self._home.stat()
        except FileNotFoundError:
            return None
        return (known.st_dev, known.st_ino) if known else None

    def parts(self, path: str) -> list[str]:
        """The names on the way from the workspace to there; none for the workspace itself."""
        wanted = PurePosixPath(path)
        if wanted.is_absolute():
            wanted = self._relative(wanted)
        if ".." in wanted.parts:
            raise self._outside(path)
        if "\0" in path or len(path) > PATH:
            raise ToolFailed(f"{path[:80]!r} can't be the path of a file.")
        return list(wanted.parts)

    def _relative(self, path: PurePosixPath) -> PurePosixPath:
        # Commands print the real path of a workspace that is reached through a link.
        for root in (self._root, self._root.resolve()):
            if path.is_relative_to(root):
                return path.relative_to(root)
        raise self._outside(str(path))

    def _outside(self, path: str) -> ToolFailed:
        return ToolFailed(
            f"{path!r} is outside the workspace {self._root}; paths are relative to it."
        )

    def _check_home(self, opened: int, path: str) -> None:
        known = os.fstat(opened)
        # By number: on some systems a name has other spellings.
        if (known.st_dev, known.st_ino) == self.home():
            raise ToolFailed(
                f"{path!r} is in {self._home}, the agent's own folder: leave it alone."
            )

    @contextlib.contextmanager
    def _folder(self, parts: Sequence[str], path: str, *, make: bool = False) -> Iterator[int]:
        """The folder at the end of the parts, open; the path is for words only."""
        try:
            folder = os.open(self._root, _FOLDER | os.O_CLOEXEC)
        except OSError as error:
            raise ToolFailed(f"The workspace {self._root} can't be opened: {error}.") from error
        try:
            self._check_home(folder, path)
            for part in parts:
                if make:
                    _make(part, path, folder)
                inner = _step(part, path, _FOLDER, folder)
                os.close(folder)
                folder = inner
                self._check_home(folder, path)
            yield folder
        finally:
            os.close(folder)


def _step(part: str, path: str, flags: int, folder: int) -> int:
    with _explained(path):
        return os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)


def _make(part: str, path: str, folder: int) -> None:
    with _explained(path), contextlib.suppress(FileExistsError):
        os.mkdir(part, dir_fd=folder)
        os.fsync(folder)


def _mode(name: str, path: str, folder: int) -> int | None:
    """The mode of the file that stands there; None where nothing does."""
    try:
        known = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    _check_regular(known, path)
    return stat.S_IMODE(known.st_mode)


def _write(name: str, data: bytes, mode: int | None, folder: int) -> None:
    descriptor = os.open(name, _NEW | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        if mode is not None:
            os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _check_regular(known: os.stat_result, path: str) -> None:
    if stat.S_ISREG(known.st_mode):
        return
    if stat.S_ISLNK(known.st_mode):
        raise ToolFailed(f"{path!r} is a symbolic link.")
    what = "a folder" if stat.S_ISDIR(known.st_mode) else "a pipe or a device"
    raise ToolFailed(f"{path!r} is {what}, not a file.")


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Tells the model in words what the system says in numbers."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolFailed(f"{path!r} goes through a symbolic link.") from error
        raise ToolFailed(f"{path!r}: {os.strerror(error.errno or 0)}.") from error
    except UnicodeError as error:
        raise ToolFailed(f"{path!r} can't be the name of a file.") from error
