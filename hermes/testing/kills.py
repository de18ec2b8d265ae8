"""Kills a process before one of its changes to files."""

import os
import signal
import sys
import traceback
from collections.abc import Callable

CHANGES = frozenset(
    {"os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.chmod", "shutil.copyfile"}
    | {"open", "sqlite3.connect"}
)
"""Names of Python's audit events for changes to files. A process can be killed before each
change."""


def completes(action: Callable[[], object], changes: int) -> bool:
    """Runs the action in a process that is killed after this many changes to files.

    Returns True if the action finished before its process was killed, and False if the process was
    killed. The action must not use threads.
    """
    child = os.fork()
    if not child:
        _kill_after(changes)
        try:
            action()
        except BaseException:  # noqa: BLE001  # the process ends here, whatever happened
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, -signal.SIGKILL), f"the process ended with {code}"
    return code == 0


def _kill_after(changes: int) -> None:
    left = changes

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event in CHANGES:
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(count)
