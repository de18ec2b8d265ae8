"""Supervises a background command, in a process that outlives the gateway.

This module is run as a script, which needs only the standard library. Its arguments are a folder,
the restrictions of the command as JSON, and the program with its arguments. It prints its process
id, and starts the command when it has read a line from stdin. This line contains, as JSON, the
values that the supervisor redacts in the output.
"""

import contextlib
import json
import os
import select
import signal
import sys
from pathlib import Path
from typing import NoReturn

from hermes.boundary.execution.cgroup import ControlGroup, control_group
from hermes.boundary.execution.output_files import OutputFiles, RedactedOutput
from hermes.boundary.execution.process_tree import (
    adopt_orphans,
    end_at_once,
    end_descendants,
    restore_signals,
)
from hermes.boundary.execution.restrictions import RestrictionFields, exit_code, limit_of, restrict
from hermes.boundary.execution.watchdog import LIMIT_CHECK_SECONDS, Watchdog

MEANT_FOR_THE_COMMAND = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


class ProcessTree:
    """The command and all processes that it starts."""

    def __init__(self, child: int, *, wrapped: bool) -> None:
        self._child = child
        self._wrapped = wrapped
        self._code: int | None = None
        signal.signal(signal.SIGCHLD, lambda *_: self._reap(os.WNOHANG))

    def last_code(self) -> int:
        """Waits for all processes to end. Returns the command's exit code."""
        self._reap(0)
        assert self._code is not None
        return self._code

    def _reap(self, options: int) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, options)
                if not pid:
                    return
                if pid == self._child and self._code is None:
                    self._code = exit_code(status, wrapped=self._wrapped)


def main() -> None:
    """Supervises the command in the arguments."""
    name, text, *command = sys.argv[1:]
    folder, restrictions = Path(name), _parsed(text)
    if os.fork():
        os._exit(0)
    # The supervisor blocks these signals, because it must outlive the command to write the
    # command's exit code.
    signal.pthread_sigmask(signal.SIG_BLOCK, MEANT_FOR_THE_COMMAND)
    os.setsid()
    # The pipe is also opened for writing. Without any writer, the command would read an end of
    # file.
    keys = os.open(folder / "input", os.O_RDWR)
    os.write(1, b"%d\n" % os.getpid())
    secrets = _read_line()
    if not secrets:
        return
    # Orphans of the command become our children, so that we can wait for them.
    adopt_orphans()
    reading, writing = os.pipe()
    group = control_group(restrictions["group"], restrictions["limits"])
    child = os.fork()
    if not child:
        _become(command, restrictions, (keys, writing, writing), group)
    tree = ProcessTree(child, wrapped=restrictions["wrapped"])
    os.close(writing)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    output = RedactedOutput(OutputFiles(folder), json.loads(secrets))
    exceeded = _record(reading, output, child, restrictions, group)
    code = tree.last_code()
    # From now on, a write to the input of the command fails.
    os.close(keys)
    if restrictions["limits"] and not exceeded:
        exceeded = limit_of(code)
    if group:
        if code and not exceeded:
            # The kernel may have ended the command between two checks.
            exceeded = group.exceeded()
        group.end()
    if exceeded:
        (folder / "exceeded").write_text(exceeded)
    fresh = folder / "exit.new"
    fresh.write_text(str(code))
    fresh.replace(folder / "exit")


def _read_line() -> bytes:
    """Reads a line from stdin; empty if the gateway closes stdin before the line is complete."""
    line = b""
    while not line.endswith(b"\n"):
        piece = os.read(0, 4096)
        if not piece:
            return b""
        line += piece
    return line


def _record(
    reading: int,
    output: RedactedOutput,
    child: int,
    restrictions: RestrictionFields,
    group: ControlGroup | None,
) -> str:
    """Writes the output of the command until all its processes have closed the output. Ends the
    command if it exceeds a limit. Returns the name of the exceeded limit; empty if the command
    exceeded none."""
    limits, exceeded = restrictions["limits"], ""
    watchdog = Watchdog(os.getpid(), limits, restrictions["folders"], group) if limits else None
    poll = select.poll()
    poll.register(reading, select.POLLIN)
    while True:
        if poll.poll(LIMIT_CHECK_SECONDS * 1000 if watchdog else None):
            data = os.read(reading, 65536)
            if not data:
                break
            output.write(data)
        if watchdog and not exceeded and watchdog.due():
            exceeded = watchdog.exceeded()
            if exceeded:
                end_at_once(os.getpid(), child, wrapped=restrictions["wrapped"])
                end_descendants(os.getpid())
    output.finish()
    return exceeded


def _parsed(text: str) -> RestrictionFields:
    fields: RestrictionFields = json.loads(text)
    return fields


def _become(
    command: list[str],
    restrictions: RestrictionFields,
    streams: tuple[int, int, int],
    group: ControlGroup | None,
) -> NoReturn:
    try:
        for descriptor, stream in enumerate(streams):
            os.dup2(stream, descriptor)
        if restrictions["limits"]:
            os.setpgid(0, 0)
        restore_signals()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, MEANT_FOR_THE_COMMAND)
        if group:
            group.join()
        restrict(restrictions)
        os.execv(command[0], command)  # noqa: S606  # running commands is its purpose
    except OSError as error:
        os.write(2, f"{error}\n".encode(errors="replace"))
    finally:
        os._exit(127)
