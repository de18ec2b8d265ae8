"""Lists the gateways that run for a home: each has a file locked while it runs."""

import contextlib
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.state.locks import FileLock, is_held
from hermes.types.deployment import RunningGateway

log = logging.getLogger(__name__)


class PidFile:
    """The file of this process. A file without a lock belongs to no running gateway."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    def write(self, running: RunningGateway) -> None:
        """Lists the gateway. On a full disk it is not listed until the next write."""
        try:
            self._lock.write(msgspec.json.encode(running))
        except OSError as error:
            log.warning("`hermes gateway status` can't list this process: %s", error)


@contextlib.contextmanager
def registered(folder: Path) -> Iterator[PidFile]:
    """Takes the first file that no gateway has, until the block ends."""
    for number in itertools.count(1):
        path = folder / ("gateway.pid" if number == 1 else f"gateway.{number}.pid")
        with FileLock(path) as lock:
            if lock.try_acquire():
                # An earlier gateway that was killed may have left its pid in the file.
                lock.write(b"")
                yield PidFile(lock)
                # The file is not removed: another gateway may have it open, to lock it next.
                lock.write(b"")
                return


def all_running(folder: Path) -> list[RunningGateway]:
    """The gateways that have a file in the folder, in the order of their ports."""
    found = (_running(path) for path in folder.glob("gateway*.pid"))
    return sorted((one for one in found if one), key=lambda one: (one.port, one.pid))


def _running(path: Path) -> RunningGateway | None:
    if not is_held(path):
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunningGateway)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
