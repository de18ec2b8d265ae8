"""Forks processes from a server that has imported everything, so that the processes start quickly.

A new Python process needs several tenths of a second of CPU time for its imports.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from multiprocessing.reduction import DupFd
from typing import Any, Protocol

from hermes.__main__ import main

COMMAND_SECONDS = 60
LARGEST_INPUT = 65_536
"""Size of the buffer of a pipe in bytes. Larger input would block, because it is written before the
process starts."""


class PassedDescriptor(Protocol):
    """A file descriptor that is passed to a forked process."""

    def detach(self) -> int: ...


def start_forked(target: Callable[..., object], *args: Any) -> ForkServerProcess:
    """Starts a process that calls the function. The process is a fork of Python's fork server,
    which the first call of `start_forked` starts."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hermes.testing.preload"])
    process = context.Process(target=target, args=args)
    process.start()
    return process


def run_forked(
    arguments: Sequence[str], environ: Mapping[str, str], stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """Runs `hermes` in a forked process until it ends. The process differs from a new process only
    in the modules that are already imported. It does not read the variables of Python itself, such
    as PYTHONPATH."""
    assert not any(name.startswith("PYTHON") for name in environ)
    given = stdin.encode()
    assert len(given) <= LARGEST_INPUT
    reading, writing = os.pipe()
    with (
        open(reading, "rb") as source,  # noqa: PTH123  # a descriptor
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        with open(writing, "wb") as pipe:  # noqa: PTH123  # a descriptor
            pipe.write(given)
        streams = [_Stream(one.fileno()) for one in (source, output, errors)]
        process = start_forked(_run_command, list(arguments), dict(environ), streams)
        process.join(COMMAND_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(arguments), COMMAND_SECONDS)
        written = []
        for stream in (output, errors):
            stream.seek(0)
            written.append(stream.read().decode().replace("\r\n", "\n"))
    return subprocess.CompletedProcess(list(arguments), process.exitcode, *written)


class _Stream:
    """A standard stream of the forked process. The descriptor is duplicated into the process while
    the arguments of the process are pickled."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> tuple[Callable[[PassedDescriptor], int], tuple[Any]]:
        return _received, (DupFd(self._descriptor),)


def _received(passed: PassedDescriptor) -> int:
    return passed.detach()


def _run_command(arguments: list[str], environ: dict[str, str], streams: list[int]) -> None:
    """Gives this process the standard streams and the environment, and runs `hermes` in it."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    os.environ.clear()  # noqa: TID251  # the environment of the new command
    os.environ.update(environ)  # noqa: TID251
    time.tzset()
    sys.argv = ["hermes", *arguments]
    main()
