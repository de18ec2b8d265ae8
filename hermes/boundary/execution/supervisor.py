"""Supervises a background command, in a process that outlives the gateway.

This module is run as a script, with the standard library alone. Its arguments are a folder, a shell
and a command. It prints its process id, and starts the command when it reads a byte from stdin.
"""

import contextlib
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn

from hermes.boundary.execution.process_tree import adopt_orphans, restore_signals

OUTPUT_PIECE = 5_000_000
"""Maximum number of bytes in one file of output. The last two files are kept."""
MEANT_FOR_THE_COMMAND = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


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


class ProcessTree:
    """The command and all processes that it starts."""

    def __init__(self, child: int) -> None:
        self._child = child
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
                    self._code = os.waitstatus_to_exitcode(status)


def main() -> None:
    """Supervises the command in the arguments."""
    name, shell, command = sys.argv[1:]
    folder = Path(name)
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
    if os.read(0, 1) != b"g":
        return
    # Orphans of the command become our children, so that we can wait for them.
    adopt_orphans()
    output = OutputFiles(folder)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _become(shell, command, (keys, writing, writing))
    tree = ProcessTree(child)
    os.close(writing)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    while data := os.read(reading, 65536):
        output.write(data)
    code = tree.last_code()
    # From now on, a write to the input fails.
    os.close(keys)
    fresh = folder / "exit.new"
    fresh.write_text(str(code))
    fresh.replace(folder / "exit")


def _become(shell: str, command: str, streams: tuple[int, int, int]) -> NoReturn:
    try:
        for descriptor, stream in enumerate(streams):
            os.dup2(stream, descriptor)
        restore_signals()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, MEANT_FOR_THE_COMMAND)
        os.execv(shell, [shell, "-c", command])  # noqa: S606  # running commands is its purpose
    finally:
        os._exit(127)
