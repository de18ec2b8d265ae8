"""A local backend for tests, which leaves no process behind."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes.boundary.execution.background import PROCESS_MARK, Background
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.execution.process import end_marked

EMPTY_ENVIRONMENT = child_environment({})
"""The environment of commands if this process had none."""
FILES_ONLY = LocalBackend(Path("/nonexistent"), None)
"""A backend that refuses commands."""


@contextlib.contextmanager
def local_backend(
    root: Path, environment: Mapping[str, str] = EMPTY_ENVIRONMENT
) -> Iterator[LocalBackend]:
    """A backend with its background processes in `root/processes`. They end with the block, and no
    new process may be left as our child, not even as a zombie."""
    processes, before = root / "processes", children()
    try:
        yield LocalBackend(processes, environment)
    finally:
        for folder in processes.glob("*"):
            end_marked(f"{PROCESS_MARK}={folder.name}")
    assert children() <= before


def background_of(backend: LocalBackend) -> Background:
    assert backend.commands is not None
    return backend.commands.background


def children() -> set[int]:
    """The child processes of this process, zombies included."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.update(map(int, (task / "children").read_text().split()))
    return found


def lives(pid: int) -> bool:
    """Whether the process is alive. Dead orphans may stay as zombies in a container."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
