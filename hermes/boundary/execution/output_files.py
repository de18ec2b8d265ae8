"""Writes the output of a background command to files, without secrets.

Supervisors use this module, so it imports only the standard library.
"""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

OUTPUT_PIECE = 5_000_000
"""Maximum number of bytes in one file of output. The last two files are kept."""
REDACTED = b"[redacted]"
SHORTEST_SECRET = 6
"""Values with fewer characters than this are not redacted, because they also occur by chance."""


class OutputFiles:
    """Writes the output of the command to numbered files, of which the last two are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self._size = 0
        self._file = self._open()

    def write(self, data: bytes) -> None:
        # If the disk is full, output is lost and the command continues.
        with contextlib.suppress(OSError):
            if self._size + len(data) > OUTPUT_PIECE:
                self._turn()
            self._size += os.write(self._file, data)

    def _turn(self) -> None:
        full = self._file
        self._number += 1
        self._file = self._open()
        self._size = 0
        os.close(full)
        (self._folder / f"output.{self._number - 2}").unlink(missing_ok=True)

    def _open(self) -> int:
        path = self._folder / f"output.{self._number}"
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


class RedactedOutput:
    """Writes output without secrets, even if a secret arrives in two pieces."""

    def __init__(self, files: OutputFiles, secrets: Sequence[str]) -> None:
        values = (os.fsencode(one) for one in secrets if len(one) >= SHORTEST_SECRET)
        self._secrets = sorted(values, key=len, reverse=True)
        self._files = files
        self._held = b""

    def write(self, data: bytes) -> None:
        """Writes the data. If the end of the data could be the beginning of a secret, this end is
        written later, when more data has arrived."""
        data = self._held + data
        for secret in self._secrets:
            data = data.replace(secret, REDACTED)
        kept = max((_overlap(data, secret) for secret in self._secrets), default=0)
        self._held = data[len(data) - kept :]
        self._files.write(data[: len(data) - kept])

    def finish(self) -> None:
        """Writes the data that `write` has held back. Must be called when all output has
        arrived."""
        self._files.write(self._held)


def _overlap(data: bytes, secret: bytes) -> int:
    """Returns the largest number of bytes at the end of `data` that are also the beginning of the
    secret."""
    longest = min(len(data), len(secret) - 1)
    return next((n for n in range(longest, 0, -1) if data.endswith(secret[:n])), 0)
