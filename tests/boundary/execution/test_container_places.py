"""The folders and scripts of the commands in a container."""

from pathlib import Path

import pytest

from hermes.boundary.execution.command_place import VisibleFolder
from hermes.boundary.execution.container_places import ContainerPlaces
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.turns import PRIVATE, a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import SandboxScope


@pytest.fixture
def places(tmp_path: Path) -> ContainerPlaces:
    scope = SandboxScope(
        agent=DEFAULT_AGENT, session=a_turn(source=PRIVATE).session, workspace="/srv/project"
    )
    visible = [VisibleFolder(shown=Path("/srv/project"), real=tmp_path)]
    return ContainerPlaces("image:1", scope, tmp_path, visible, lambda: None)


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
