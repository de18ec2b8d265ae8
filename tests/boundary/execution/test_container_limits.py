"""The kernel's counts show whether a container has reached a limit. Ordinary folders stand in for
control groups."""

from pathlib import Path

import pytest

from hermes.boundary.execution.container_limits import ContainerLimits

OLD = "8:pids:/c\n5:devices:/c\n4:cpu,memory:/c\n0::/c\n"
NEW = "0::/c\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("groups", "memory", "processes"),
    [
        (OLD, "memory/c/memory.oom_control", "pids/c/pids.events"),
        (NEW, "c/memory.events", "c/pids.events"),
    ],
    ids=["cgroup v1", "cgroup v2"],
)
def test_a_limit_counts_if_it_was_reached_since_the_beginning(
    tmp_path: Path, groups: str, memory: str, processes: str
) -> None:
    write(tmp_path / "proc" / "7" / "cgroup", groups)
    write(tmp_path / memory, "oom_kill_disable 0\noom_kill 3\n")
    write(tmp_path / processes, "max 2\n")
    limits = ContainerLimits(7, tmp_path, tmp_path / "proc")
    assert limits.reached() == ""
    write(tmp_path / processes, "max 3\n")
    assert limits.reached() == "processes"
    write(tmp_path / memory, "oom_kill_disable 0\noom_kill 4\n")
    assert limits.reached() == "memory"
    assert ContainerLimits(7, tmp_path, tmp_path / "proc").reached() == ""


def test_a_container_without_control_groups_has_no_limits(tmp_path: Path) -> None:
    assert ContainerLimits(7, tmp_path, tmp_path).reached() == ""
