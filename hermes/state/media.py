"""The files that came with messages, stored under the hash of their content."""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

from hermes.state.locks import FileLock
from hermes.state.paths import write_private
from hermes.types.errors import StoreUnavailable

REQUESTS, SESSIONS = "requests", "sessions"
"""The folders for stateless requests and for sessions, which have different retention periods."""
REFRESH_SECONDS = 3600.0
"""Minimum number of seconds between two recorded uses of a file. A use that follows sooner is not
recorded."""
_NAME = re.compile(rf"(?:{REQUESTS}|{SESSIONS})/[0-9a-f]{{64}}")


class MediaCache:
    """The files in one folder. The modification time of a file is the time of its last recorded
    use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, data: bytes, *, stateless: bool) -> str:
        """Stores the content durably, and returns the name under which it can be read."""
        part = REQUESTS if stateless else SESSIONS
        name = f"{part}/{hashlib.sha256(data).hexdigest()}"
        path = self._folder / name
        try:
            for folder in (self._folder, path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._refreshed(path):
                write_private(path, data)
        except OSError as error:
            raise StoreUnavailable(f"a file can't be stored in {path}: {error}") from error
        return name

    def read(self, name: str) -> bytes | None:
        """Returns the content; None if the file does not exist any more."""
        if not _NAME.fullmatch(name):
            return None
        path = self._folder / name
        try:
            data = path.read_bytes()
            if path.stat().st_mtime < time.time() - REFRESH_SECONDS:
                self._refreshed(path)
        except OSError:
            return None
        return data

    def locate(self, name: str) -> Path | None:
        """Returns the path of a stored file; None if the text is not the name of a stored file."""
        return self._folder / name if _NAME.fullmatch(name) else None

    def forget(self, requests: float, sessions: float) -> None:
        """Deletes the files of stateless requests that were last used before the time `requests`,
        and the files of sessions that were last used before the time `sessions`."""
        for part, before in ((REQUESTS, requests), (SESSIONS, sessions)):
            for path in (self._folder / part).glob("*"):
                with contextlib.suppress(OSError), self._locked():
                    # REFRESH_SECONDS is subtracted, because the last use may be up to this much
                    # later than the recorded use.
                    if path.stat().st_mtime < before - REFRESH_SECONDS:
                        path.unlink()

    def _refreshed(self, path: Path) -> bool:
        """Records that the file is used now. Returns False if there is no such file."""
        # Without the lock, `forget` could read the time of the previous use, and delete the file
        # after this call.
        with self._locked():
            try:
                os.utime(path)
            except FileNotFoundError:
                return False
        return True

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with FileLock(self._folder / ".lock") as lock:
            lock.acquire()
            yield
