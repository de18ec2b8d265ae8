"""An approved command runs with the folder, the environment and the scripts that were approved."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.boundary.execution.command_place import PlaceCheck, ScriptFiles, VisibleFolder
from hermes.boundary.execution.local import LocalBackend, LocalSandbox
from hermes.boundary.execution.sandbox import SandboxBackend
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.commands import EMPTY_ENVIRONMENT, sandbox_backend
from hermes.testing.machine_contract import check_pinned_script, check_swapped_script
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendOptions, CommandPlace, SandboxScope

RACES = 20


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def visible(work: Path) -> ScriptFiles:
    """The files that commands see in a sandbox: the folder `work` as /shown, and /usr."""
    folder = VisibleFolder(shown=Path("/shown"), real=work)
    return ScriptFiles("/shown", [folder], ["/usr"], [work / "hidden"])


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[SandboxBackend]:
    options = BackendOptions(
        processes=tmp_path / "processes",
        environment=EMPTY_ENVIRONMENT,
        sandboxes=tmp_path / "sandboxes",
    )
    with sandbox_backend(tmp_path, "bubblewrap"):
        backend = SandboxBackend(options, "bubblewrap")
        yield backend
        backend.close()


def scope(work: Path) -> SandboxScope:
    return SandboxScope(agent=DEFAULT_AGENT, session=a_turn().session, workspace=str(work))


async def test_a_script_that_is_replaced_before_the_start_never_runs(
    work: Path, local: LocalBackend
) -> None:
    await check_swapped_script(await local.open(scope(work)), work, RACES)


async def test_a_script_that_is_replaced_never_runs_in_a_sandbox(
    work: Path, sandbox: SandboxBackend
) -> None:
    await check_swapped_script(await sandbox.open(scope(work)), work, RACES)


async def test_a_sandbox_runs_a_copy_that_nobody_can_change(
    tmp_path: Path, work: Path, sandbox: SandboxBackend
) -> None:
    opened: LocalSandbox = await sandbox.open(scope(work))
    await opened.run("true", RecordedCommand(), seconds=30.0)
    (home,) = tmp_path.glob("sandboxes/sandbox/*/home")
    await check_pinned_script(opened, work, home)


async def test_a_link_in_a_sandbox_is_not_accepted_as_a_script(
    work: Path, sandbox: SandboxBackend
) -> None:
    (work / "x.sh").symlink_to("/etc/hostname")
    opened: LocalSandbox = await sandbox.open(scope(work))
    with pytest.raises(ToolFailed):
        await opened.locate(".", ["x.sh"])


async def test_a_script_on_this_machine_may_be_a_link_to_a_file(
    work: Path, local: LocalBackend
) -> None:
    (work / "good.sh").write_text("echo approved")
    (work / "evil.sh").write_text("echo approved")
    (work / "x.sh").symlink_to("good.sh")
    opened = await local.open(scope(work))
    place = await opened.locate(".", ["x.sh"])
    assert [one.path for one in place.scripts] == [str(work / "good.sh")]
    (work / "x.sh").unlink()
    (work / "x.sh").symlink_to("evil.sh")
    later = await opened.locate(".", ["x.sh"])
    assert later != place


def test_a_script_is_found_at_the_path_that_commands_use(work: Path, visible: ScriptFiles) -> None:
    (work / "a").mkdir()
    (work / "a" / "x.sh").write_text("x")
    for folder, script in (
        ("/shown/a", "x.sh"),
        ("/shown", "a/x.sh"),
        ("/shown/a", "../a/./x.sh"),
        ("/usr", "~/a/x.sh"),
        ("/", "/shown/a/x.sh"),
    ):
        found, data = visible.find(folder, script)
        assert (found.path, data) == ("/shown/a/x.sh", b"x")
    assert visible.find("/shown", "/usr/bin/env")[0].path == os.path.realpath("/usr/bin/env")


def test_a_file_that_commands_can_not_see_is_not_accepted_as_a_script(
    work: Path, visible: ScriptFiles
) -> None:
    (work / "hidden").mkdir()
    (work / "hidden" / "key").write_text("secret")
    for script in ("hidden/key", str(work / "hidden" / "key"), "/etc/passwd", "~"):
        with pytest.raises(ToolFailed):
            visible.find("/shown", script)


async def test_a_script_in_the_own_workspace_of_a_sandbox_can_run(tmp_path: Path) -> None:
    """The workspace of a sandbox is in the home, which is hidden from commands."""
    options = BackendOptions(
        processes=tmp_path / "processes",
        environment=EMPTY_ENVIRONMENT,
        sandboxes=tmp_path / "sandboxes",
        own_workspaces=True,
    )
    own = replace(scope(tmp_path / "workspace"), home=str(tmp_path))
    with sandbox_backend(tmp_path, "bubblewrap", options) as backend:
        opened: LocalSandbox = await backend.open(own)
        await opened.write("x.sh", b"echo approved")
        place = await opened.locate(".", ["x.sh"])
        run = await opened.run("bash x.sh", RecordedCommand(), seconds=30.0, place=place)
        assert run.text == "approved\n"
        assert list(tmp_path.glob("sandboxes/sandbox/*/overlays/*"))


def test_an_approval_is_for_one_environment(visible: ScriptFiles) -> None:
    place = PlaceCheck("local", {"A": "1"}, visible).locate("/shown", [])
    assert place == CommandPlace(
        backend="local",
        folder="/shown",
        environment=(("A", "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"),),
    )
    for backend, environment in (("local", {"A": "2"}), ("local", {}), ("sandbox", {"A": "1"})):
        with pytest.raises(ToolFailed, match="the environment has changed"):
            PlaceCheck(backend, environment, visible).check(place, "/shown")
    with pytest.raises(ToolFailed, match="the folder has changed"):
        PlaceCheck("local", {"A": "1"}, visible).check(place, "/shown/a")
