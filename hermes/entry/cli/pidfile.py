"""Which gateways run for a home: each holds a file locked while it lives."""

import contextlib
import fcntl
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.types.value import Value


class Running(Value):
    """A gateway at work."""

    pid: int
    port: int = 0
    url: str = ""
    """Where its API listens; empty before it does, and without one."""


class PidFile:
    """The lock is the truth: a file that nobody holds is what a dead process left behind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        """Ours until the block ends; False when another process has it."""
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            if not _locked(descriptor):
                yield False
                return
            self._descriptor = descriptor
            yield True
            # Emptied, not removed: whoever waits for the lock has this very file open.
            os.ftruncate(descriptor, 0)
        finally:
            self._descriptor = -1
            os.close(descriptor)

    def write(self, running: Running) -> None:
        """Says who holds it; nothing when it is not ours."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, msgspec.json.encode(running), 0)

    def running(self) -> Running | None:
        """The gateway that holds it."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            if _locked(descriptor):
                return None
            return msgspec.json.decode(os.pread(descriptor, 4096, 0), type=Running)
        except msgspec.DecodeError:
            return None
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def registered(folder: Path) -> Iterator[PidFile]:
    """The first file that no gateway has, ours until the block ends."""
    for number in itertools.count(1):
        file = PidFile(folder / ("gateway.pid" if number == 1 else f"gateway.{number}.pid"))
        with file.held() as ours:
            if ours:
                yield file
                return


def all_running(folder: Path) -> list[Running]:
    """The gateways that have a file there, by their ports."""
    found = (PidFile(path).running() for path in folder.glob("gateway*.pid"))
    return sorted((one for one in found if one), key=lambda one: (one.port, one.pid))


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
