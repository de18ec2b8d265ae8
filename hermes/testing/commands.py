"""Execution backends on this machine for tests, and checks that no process outlives its test."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import psutil

from hermes.boundary.execution.background import PROCESS_MARK, Background
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.launch import CommandLaunch, ShellLauncher
from hermes.boundary.execution.levels import Level
from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.execution.process import end_marked
from hermes.boundary.execution.process_tree import (
    DEAD,
    PR_SET_CHILD_SUBREAPER,
    ProcessEntry,
    descendants,
    send_signal,
    set_process_option,
)
from hermes.boundary.execution.sandbox import SANDBOX_BACKEND, SandboxBackend
from hermes.types.execution import BackendOptions, ExecutionBackend

OnThisMachine = TypeVar("OnThisMachine", LocalBackend, SandboxBackend)
EMPTY_ENVIRONMENT = child_environment({})
"""The environment that a command gets if the environment of the gateway is empty."""
FILES_ONLY = LocalBackend(Path("/nonexistent"), None)
"""A backend that allows file operations and refuses commands."""
ENDING = 5.0
"""Seconds within which killed processes must disappear."""


@contextlib.contextmanager
def no_process_left() -> Iterator[None]:
    """Fails if the block has started a process that still runs after the block, even if that
    process has left its session.

    While the block runs, this process is a subreaper: orphaned processes become its children, so
    the check finds them too.
    """
    before = {entry.pid for entry in descendants(os.getpid())}
    set_process_option(PR_SET_CHILD_SUBREAPER, 1)
    try:
        yield
        deadline = time.monotonic() + ENDING
        while (left := _live(before)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert left == [], [Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in left]
    finally:
        for entry in _live(before):
            send_signal(entry.pid, entry.started, signal.SIGKILL)
        set_process_option(PR_SET_CHILD_SUBREAPER, 0)


def _live(before: set[int]) -> list[ProcessEntry]:
    """Returns the living descendants of this process that are not in `before`. Reaps the dead
    children."""
    found = [entry for entry in descendants(os.getpid()) if entry.pid not in before]
    for entry in found:
        if entry.state in DEAD and entry.parent == os.getpid():
            os.waitpid(entry.pid, os.WNOHANG)
    return [entry for entry in found if entry.state not in DEAD]


@contextlib.contextmanager
def local_backend(
    root: Path, environment: Mapping[str, str] = EMPTY_ENVIRONMENT
) -> Iterator[LocalBackend]:
    """Yields a backend that keeps the records of background processes in `root/processes`. When the
    block ends, the background processes are killed. Fails if a new child process is left after
    that, even a zombie."""
    with _closed(LocalBackend(root / "processes", environment), root / "processes") as backend:
        yield backend


@contextlib.contextmanager
def sandbox_backend(
    root: Path, level: Level, options: BackendOptions | None = None
) -> Iterator[SandboxBackend]:
    """Yields a backend that isolates commands at this level. When the block ends, the background
    processes are killed, and a child process that is left makes the test fail."""
    options = options or BackendOptions(
        processes=root / "processes",
        environment=EMPTY_ENVIRONMENT,
        sandboxes=root / "sandboxes",
    )
    with _closed(SandboxBackend(options, level), root / "processes") as backend:
        yield backend


def crash_backend(home: Path, *, isolated: bool) -> ExecutionBackend:
    """Returns the backend of a gateway that is killed in a test. The backend runs commands in the
    sandbox if `isolated` is True, and without isolation otherwise."""
    environment = {"PATH": os.defpath}
    if not isolated:
        return LocalBackend(home / "processes", environment)
    options = BackendOptions(
        processes=home / "processes",
        environment=environment,
        sandboxes=home / "sandboxes",
        own_workspaces=True,
        hidden=(home,),
    )
    return SANDBOX_BACKEND.make(options)


@contextlib.contextmanager
def _closed(backend: OnThisMachine, processes: Path) -> Iterator[OnThisMachine]:
    before = children()
    try:
        yield backend
    finally:
        backend.close()
        for folder in processes.glob("*"):
            end_marked(f"{PROCESS_MARK}={folder.name}")
    assert children() <= before


def shell_launch(
    command: str,
    folder: Path,
    environment: Mapping[str, str] = EMPTY_ENVIRONMENT,
    shell: str = shutil.which("bash") or "/bin/sh",
) -> CommandLaunch:
    """Returns the command, ready to start in a shell without restrictions."""
    return ShellLauncher(shell, environment).launch(command, folder, background=False)


def background_of(backend: LocalBackend) -> Background:
    assert backend.commands is not None
    return backend.commands.background


_earlier: set[int] = set()


def note_earlier_children() -> None:
    """Records the children of earlier tests, which may not have ended yet. `new_children` leaves
    these children out. Call this function before a test."""
    _earlier.clear()
    _earlier.update(children())


def new_children() -> list[psutil.Process]:
    """Returns the child processes that were started in this test, zombies included."""
    return [psutil.Process(pid) for pid in sorted(children() - _earlier)]


def children() -> set[int]:
    """Returns the ids of the child processes of this process, zombies included."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.update(map(int, (task / "children").read_text().split()))
    return found


def lives(pid: int) -> bool:
    """Returns whether the process is alive. A zombie counts as dead, because some containers have
    no process that reaps orphans."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
