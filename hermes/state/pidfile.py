"""Lists the gateways that run for a home. Each gateway locks a file while it runs."""

import contextlib
import itertools
import logging
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.state.locks import FileLock, is_held
from hermes.types.checks import Check, CheckLevel
from hermes.types.deployment import RunningGateway

log = logging.getLogger(__name__)


class PidFile:
    """A gateway's locked file, whose content describes the gateway. A file that is not locked
    belongs to no running gateway."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock
        self._length = 0

    def write(self, running: RunningGateway) -> None:
        """Writes the description of this gateway into its file. The gateway is then listed until
        the block of `registered` ends. If the disk is full, the gateway is not listed until the
        next write."""
        # The file never becomes shorter, so that no reader sees a truncated description.
        data = msgspec.json.encode(running).ljust(self._length)
        self._length = len(data)
        try:
            self._lock.write(data)
        except OSError as error:
            log.warning("`hermes gateway status` can't list this process: %s", error)


@contextlib.contextmanager
def registered(folder: Path) -> Iterator[PidFile]:
    """Locks the first PID file that no gateway uses, until the block ends."""
    for number in itertools.count(1):
        path = folder / ("gateway.pid" if number == 1 else f"gateway.{number}.pid")
        with FileLock(path) as lock:
            if lock.try_acquire():
                # The file is emptied, because an earlier gateway that was killed may have left its
                # description in it.
                lock.write(b"")
                yield PidFile(lock)
                # The file is not removed, because another gateway may be about to lock it.
                lock.write(b"")
                return


def all_running(folder: Path) -> list[RunningGateway]:
    """Returns the running gateways, ordered by port. Each of them has locked a file in the
    folder."""
    found = (_running(path) for path in folder.glob("gateway*.pid"))
    return sorted((one for one in found if one), key=lambda one: (one.port, one.pid))


def check_gateways(folder: Path, *, needed: bool) -> list[Check]:
    """Checks that the gateways listed in the folder serve all their accounts. `needed` says whether
    a gateway should run. A gateway should run if chat accounts are configured, because only a
    running gateway serves these accounts."""
    running = all_running(folder)
    if not running:
        text, hint = "no gateway runs for this home", "`hermes gateway` starts it"
        level: CheckLevel = "warning" if needed else "ok"
        return [Check(name="gateway", level=level, text=text, hint=hint)]
    found = []
    for one in running:
        text = f"runs at {one.url or f'port {one.port}'} (pid {one.pid})"
        down = [f"{own.account} is {own.state} ({own.reason})" for own in one.accounts if own.down]
        if down:
            hint = "`hermes logs` shows what happened"
            text = f"{text}, but {', '.join(down)}"
            found.append(Check(name="gateway", level="warning", text=text, hint=hint))
        else:
            found.append(Check(name="gateway", level="ok", text=text))
    return found


def _running(path: Path) -> RunningGateway | None:
    if not is_held(path):
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunningGateway)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
