"""Each command gets a control group with its limits. An ordinary folder replaces the kernel's
folder of control groups."""

from pathlib import Path

import pytest
from msgspec.structs import asdict, replace

from hermes.boundary.execution.cgroup import (
    ControlGroup,
    control_group,
    delegated_group,
    delegation_mark,
)
from hermes.boundary.execution.foreground import Foreground
from hermes.boundary.execution.launch import Restrictions
from hermes.testing.commands import shell_launch
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.types.execution import CommandLimits

LIMITS = CommandLimits(memory=1_000_000, processes=9)


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The folder of a delegated control group. This process is in the subgroup `gateway` of the
    group."""
    unit = tmp_path / "system.slice" / "hermes.service"
    (unit / "gateway").mkdir(parents=True)
    (unit / "cgroup.controllers").write_text("cpu memory pids\n")
    (unit / "cgroup.procs").write_text("")
    (tmp_path / "own").write_text("1:cpu:/x\n0::/system.slice/hermes.service/gateway\n")
    return unit


def found(folder: Path, mark: bytes = b"1") -> str:
    return delegated_group(str(folder / "own"), str(folder), lambda _: mark)


def test_a_group_that_systemd_has_delegated_is_found(tmp_path: Path, unit: Path) -> None:
    assert found(tmp_path) == str(unit)


def test_a_group_that_is_not_delegated_is_not_used(tmp_path: Path, unit: Path) -> None:
    assert found(tmp_path, b"0") == ""
    assert delegation_mark(str(unit)) == b""


@pytest.mark.parametrize(
    ("file", "content"), [("cgroup.controllers", "cpu pids\n"), ("cgroup.procs", "17\n")]
)
def test_a_group_without_the_controllers_or_with_processes_is_not_used(
    tmp_path: Path, unit: Path, file: str, content: str
) -> None:
    (unit / file).write_text(content)
    assert found(tmp_path) == ""


@pytest.mark.parametrize("own", ["0::/\n", "0::/user\n", "4:memory:/x\n", ""])
def test_a_process_without_a_group_above_its_own_finds_no_delegated_group(
    tmp_path: Path, own: str
) -> None:
    (tmp_path / "own").write_text(own)
    assert found(tmp_path) == ""
    assert delegated_group(str(tmp_path / "missing")) == ""


def test_a_group_sets_the_limits_of_a_command(tmp_path: Path) -> None:
    left = tmp_path / f"command-{2**22 + 1}"
    left.mkdir()
    group = ControlGroup(str(tmp_path), asdict(LIMITS))
    folder = Path(group.folder)
    written = {file.name: file.read_text() for file in folder.iterdir()}
    assert written == {
        "memory.max": "1000000",
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "pids.max": "9",
    }
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+memory +pids"
    # `left` is the group of a supervisor that was killed. It has no processes, so it is deleted.
    assert not left.exists()
    group.join()
    assert (folder / "cgroup.procs").read_text() == "0"
    group.end()
    assert (folder / "cgroup.kill").read_text() == "1"


def test_a_limit_of_zero_is_not_set(tmp_path: Path) -> None:
    unlimited = replace(LIMITS, memory=0, processes=0)
    group = ControlGroup(str(tmp_path), asdict(unlimited))
    assert list(Path(group.folder).iterdir()) == []
    group.end()
    assert not Path(group.folder, "memory.max").exists()


def test_the_kernel_tells_which_limit_was_reached(tmp_path: Path) -> None:
    group = ControlGroup(str(tmp_path), asdict(LIMITS))
    folder = Path(group.folder)
    (folder / "memory.events").write_text("low 0\nmax 7\noom 1\noom_kill 0\n")
    (folder / "pids.events").write_text("max 0\n")
    assert group.exceeded() == ""
    (folder / "pids.events").write_text("max 3\n")
    assert group.exceeded() == "processes"
    (folder / "memory.events").write_text("low 0\nmax 7\noom 1\noom_kill 2\n")
    assert group.exceeded() == "memory"


def test_if_the_kernel_refuses_a_group_the_watchdog_enforces_the_limits(tmp_path: Path) -> None:
    assert control_group(str(tmp_path / "missing"), asdict(LIMITS)) is None
    assert control_group("", asdict(LIMITS)) is None
    assert control_group(str(tmp_path), None) is None


async def test_a_command_joins_its_group_and_is_ended_at_its_limit(tmp_path: Path) -> None:
    parent = tmp_path / "unit"
    parent.mkdir()
    # The parent is an ordinary folder, not a control group. So the command itself writes the file
    # in which the kernel would report that the limit was reached.
    command = (
        f"cd {parent}/command-*; cat cgroup.procs pids.max; echo max 1 > pids.events; sleep 600"
    )
    launch = replace(
        shell_launch(command, tmp_path),
        restrictions=Restrictions(limits=CommandLimits(processes=9), group=str(parent)),
    )
    foreground = Foreground()
    try:
        ended = await foreground.run(launch, 30.0, RecordedCommand())
    finally:
        foreground.close()
    assert (ended.text, ended.exceeded, ended.timed_out) == ("09", "processes", False)
