"""Commands for tests: where they run, and what they must not leave behind."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from hermes.boundary.execution.background import MARK
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.local import LocalExecution
from hermes.boundary.execution.process import end_marked

NOTHING_KNOWN = child_environment({})


@contextlib.contextmanager
def local_execution(
    root: Path, environment: Mapping[str, str] = NOTHING_KNOWN
) -> Iterator[LocalExecution]:
    """Commands with `root/processes` for those in the background, of which none outlives the test;
    none of any kind may be our child behind it, not even as a zombie."""
    processes = root / "processes"
    try:
        yield LocalExecution(environment, processes)
    finally:
        for folder in processes.glob("*"):
            end_marked(f"{MARK}={folder.name}")
    assert children() == []


def children() -> list[int]:
    """The processes that are ours to bury."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += map(int, (task / "children").read_text().split())
    return found


def lives(pid: int) -> bool:
    """Whether it does something still: where nobody buries orphans, the dead stay as zombies."""
    try:
        os.kill(pid, 0)
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
