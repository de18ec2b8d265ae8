"""A backend whose commands use a program that stands in for the real sudo."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.execution.sudo import SudoAccess
from hermes.testing.commands import EMPTY_ENVIRONMENT

SUDO_PASSWORD = "opensesame-4711"  # noqa: S105  # a test's password
_PROGRAM = """#!/bin/sh
echo "$PPID $*" >> {folder}/calls
case "$1" in
-S) read -r word; [ "$word" = {password} ] || {{ echo wrong >&2; exit 1; }} ;;
*) shift; AS=root exec "$@" ;;
esac
"""


@contextmanager
def sudo_backend(folder: Path, accepted: str = SUDO_PASSWORD) -> Iterator[LocalBackend]:
    """Yields a backend that gives `SUDO_PASSWORD` to a fake sudo, which accepts the password
    `accepted`. Each call of the fake appends a line to the file `calls` in `folder`: the parent
    process and the arguments of the call. The workspace is the subfolder `work`."""
    program = folder / "real-sudo"
    quoted = {"folder": shlex.quote(str(folder)), "password": shlex.quote(accepted)}
    program.write_text(_PROGRAM.format(**quoted))
    program.chmod(0o700)
    (folder / "work").mkdir()
    sudo = SudoAccess(str(program), SUDO_PASSWORD, folder / "programs")
    backend = LocalBackend(folder / "processes", EMPTY_ENVIRONMENT, None, sudo)
    try:
        yield backend
    finally:
        backend.close()
