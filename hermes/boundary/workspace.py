"""A folder that file tools cannot leave, whatever path or link they are given."""

import errno
import os
import stat
from pathlib import Path, PurePosixPath

import anyio.to_thread

from hermes.types.errors import ToolFailed

MOST = 10_000_000
"""Bytes of a file that is read whole."""


class Workspace:
    """Opens one component of a path after the other and follows no link: nothing can be swapped
    for a way out between a check and the use."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def read_text(self, path: str) -> str:
        data = await anyio.to_thread.run_sync(self.read_bytes, path, abandon_on_cancel=True)
        if b"\0" in data[:8192]:
            raise ToolFailed(f"{path!r} is not a text file.")
        return data.decode("utf-8", errors="replace")

    def read_bytes(self, path: str) -> bytes:
        descriptor = self._open(path)
        try:
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISREG(mode):
                what = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
                raise ToolFailed(f"{path!r} is {what}, not a file.")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(MOST + 1)
        finally:
            os.close(descriptor)
        if len(data) > MOST:
            raise ToolFailed(f"{path!r} is larger than {MOST} bytes.")
        return data

    def _open(self, path: str) -> int:
        parts = self._parts(path)
        try:
            folder = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise ToolFailed(f"The workspace {self._root} can't be opened: {error}.") from error
        try:
            for part in parts[:-1]:
                inner = _step(part, path, os.O_RDONLY | os.O_DIRECTORY, folder)
                os.close(folder)
                folder = inner
            # A pipe in the workspace must not make the read wait for a writer.
            return _step(parts[-1], path, os.O_RDONLY | os.O_NONBLOCK, folder)
        finally:
            os.close(folder)

    def _parts(self, path: str) -> list[str]:
        wanted = PurePosixPath(path)
        if wanted.is_absolute():
            try:
                wanted = wanted.relative_to(self._root)
            except ValueError:
                raise ToolFailed(f"{path!r} is outside the workspace {self._root}.") from None
        parts = list(wanted.parts)
        if not parts or "\0" in path or ".." in parts:
            raise ToolFailed(f"{path!r} is not a path inside the workspace {self._root}.")
        return parts


def _step(part: str, path: str, flags: int, folder: int) -> int:
    try:
        return os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolFailed(f"{path!r} goes through a symbolic link.") from error
        raise ToolFailed(f"{path!r}: {os.strerror(error.errno or 0)}.") from error
    except UnicodeError as error:
        raise ToolFailed(f"{path!r} can't be the name of a file.") from error
