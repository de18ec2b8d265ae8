"""Restricts a process before it executes a command, and translates the exit codes of commands.

Supervisors use this module, so it imports only the standard library.
"""

import base64
import contextlib
import os
import resource
import signal
from collections.abc import Mapping, Sequence
from typing import TypedDict

from hermes.boundary.execution.landlock import drop_privileges, install_filter, restrict_files

FILTER_DESCRIPTOR = 3
"""The descriptor from which bubblewrap reads the seccomp filter."""
PRIORITY = 5
"""The `nice` value of commands. The gateway and the supervisors have a lower value, so they stay
responsive."""
CPU_GRACE = 5
"""Seconds of CPU time between SIGXCPU and SIGKILL."""
_SIGNAL_CODES = range(129, 129 + 64)
"""The exit codes of a shell or of bubblewrap if a signal ended the command. The code is 128 plus
the number of the signal."""
_LIMIT_SIGNALS = {-signal.SIGXFSZ: "file size", -signal.SIGXCPU: "CPU time"}


class LandlockFields(TypedDict):
    readable: Sequence[str]
    listable: Sequence[str]
    writable: Sequence[str]


class RestrictionFields(TypedDict):
    """The fields of `Restrictions` as JSON."""

    limits: Mapping[str, int] | None
    folders: Sequence[str]
    landlock: LandlockFields | None
    seccomp: str
    wrapped: bool
    group: str


def restrict(fields: RestrictionFields) -> None:
    """Restricts this process and everything that it executes. Raises OSError if a restriction can't
    be applied. The caller must then not execute the command."""
    if fields["limits"] is not None:
        _limit(fields["limits"])
    program = base64.b64decode(fields["seccomp"])
    if fields["wrapped"] and program:
        # Bubblewrap itself needs system calls that the filter forbids. So bubblewrap gets the
        # filter as data, and installs it after these calls.
        _pass_on(program)
    if fields["landlock"] is not None:
        # The rules are made before the privileges are dropped, because finding the paths may need
        # privileges.
        restrict_files(**fields["landlock"])
        drop_privileges()
        install_filter(program)


def _limit(limits: Mapping[str, int]) -> None:
    os.nice(PRIORITY)
    _lower(resource.RLIMIT_CORE, 0)
    if limits["cpu_seconds"]:
        _lower(resource.RLIMIT_CPU, limits["cpu_seconds"], CPU_GRACE)
    if limits["file_bytes"]:
        _lower(resource.RLIMIT_FSIZE, limits["file_bytes"])


def _lower(kind: int, value: int, grace: int = 0) -> None:
    _, highest = resource.getrlimit(kind)
    if highest == resource.RLIM_INFINITY:
        highest = value + grace
    resource.setrlimit(kind, (min(value, highest), min(value + grace, highest)))


def _pass_on(program: bytes) -> None:
    file = os.memfd_create("filter")
    os.write(file, program)
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, FILTER_DESCRIPTOR)
    os.set_inheritable(FILTER_DESCRIPTOR, True)


def exit_code(status: int, *, wrapped: bool) -> int:
    """Returns the exit code of a command from its wait status; negative if a signal ended it."""
    code = os.waitstatus_to_exitcode(status)
    if wrapped and code in _SIGNAL_CODES:
        return 128 - code
    return code


def limit_of(code: int) -> str:
    """Returns the limit because of which the kernel ended the command; empty if the command ended
    for another reason."""
    with contextlib.suppress(KeyError):
        return _LIMIT_SIGNALS[code]
    # If a signal ends the last command of a shell, the shell exits with 128 + the signal number.
    return _LIMIT_SIGNALS.get(128 - code, "")
