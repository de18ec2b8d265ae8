"""Folders and scripts are found at the paths at which commands in a container see them."""

from pathlib import Path

import pytest

from hermes.boundary.execution.command_place import VisibleFolder
from hermes.boundary.execution.container_places import ContainerPlaces
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.turns import PRIVATE, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandPlace, SandboxScope

SCOPE = SandboxScope(
    agent=DEFAULT_AGENT, session=a_turn(source=PRIVATE).session, workspace="/srv/project"
)


@pytest.fixture
def places(tmp_path: Path) -> ContainerPlaces:
    visible = [VisibleFolder(shown=Path("/srv/project"), real=tmp_path)]
    hidden = [tmp_path / "hidden"]
    return ContainerPlaces("image:1", SCOPE, tmp_path, visible, lambda: None, hidden)


async def test_a_folder_is_named_as_commands_see_it(
    tmp_path: Path, places: ContainerPlaces
) -> None:
    (tmp_path / "a").mkdir()
    assert await places.folder(".") == "/srv/project"
    assert await places.folder("a") == await places.folder("/srv/project/a") == "/srv/project/a"
    with pytest.raises(ToolFailed, match="outside"):
        await places.folder("..")


async def test_scripts_of_the_workspace_and_of_the_image_are_found(
    tmp_path: Path, places: ContainerPlaces
) -> None:
    (tmp_path / "x.sh").write_text("one")
    own, missing, of_image = await places.scripts(
        "/srv/project", ["x.sh", "no.sh", "/usr/bin/tool"]
    )
    assert (own.path, missing.digest) == ("/srv/project/x.sh", "")
    assert (of_image.path, len(of_image.digest)) == ("/usr/bin/tool", 64)


@pytest.mark.parametrize("path", ["/tmp/x.sh", "/dev/shm/x", "/proc/self/fd/3"])
async def test_a_script_that_this_machine_does_not_see_can_not_be_approved(
    places: ContainerPlaces, path: str
) -> None:
    with pytest.raises(ToolFailed, match="write it to the workspace"):
        await places.scripts("/srv/project", [path])


async def test_only_scripts_that_commands_could_change_are_copied(
    tmp_path: Path, places: ContainerPlaces
) -> None:
    (tmp_path / "x.sh").write_text("one")
    names = ["x.sh", "no.sh", "/usr/bin/tool"]
    scripts = await places.scripts("/srv/project", names)
    place = CommandPlace(backend="docker", folder="/srv/project", scripts=scripts)
    ((copy, path),) = await places.copies(place, tmp_path / "approved")
    assert (copy.read_text(), path) == ("one", "/srv/project/x.sh")
    (tmp_path / "x.sh").write_text("two")
    with pytest.raises(ToolFailed, match="changed since the approval"):
        await places.copies(place, tmp_path / "approved")


async def test_a_script_is_found_if_the_workspace_is_in_a_hidden_folder(tmp_path: Path) -> None:
    workspace = tmp_path / "sandboxes" / "1" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "x.sh").write_text("one")
    visible = [VisibleFolder(shown=Path("/srv/project"), real=workspace)]
    places = ContainerPlaces("image:1", SCOPE, workspace, visible, lambda: None, [tmp_path])
    (script,) = await places.scripts("/srv/project", ["x.sh"])
    assert script.digest


async def test_only_folders_with_approved_scripts_get_overlays(
    tmp_path: Path, places: ContainerPlaces
) -> None:
    paths = ["/srv/project/x.sh", "/srv/project/tools/y.sh", "/usr/bin/tool"]
    found = await places.overlays(paths, tmp_path / "root")
    assert list(found) == ["/srv/project"]
    assert await places.overlays([], tmp_path / "root") == {}


async def test_a_script_that_commands_can_not_see_is_refused(
    tmp_path: Path, places: ContainerPlaces
) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / ".env").write_text("KEY=1")
    with pytest.raises(ToolFailed, match="not a file that commands can read"):
        await places.scripts("/srv/project", ["hidden/.env"])
