"""Each folder has an id. A shared folder is refused if it is missing, can't be written, or is an
empty mount point."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from hermes.state.folder_ids import FOLDER_ID, home_folder, shared_folder
from hermes.state.paths import Home
from hermes.types.errors import ConfigError, StoreUnavailable
from hermes.types.identity import FolderId


def a_home(path: Path) -> Home:
    home = Home(root=path)
    home.ensure()
    return home


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o700)
    return folder


def test_a_home_keeps_its_id_and_no_other_home_has_it(tmp_path: Path) -> None:
    one, other = a_home(tmp_path / "one"), a_home(tmp_path / "other")
    first = home_folder(one)
    assert home_folder(one) == first
    assert (first.path, first.shared) == (str(one.root), False)
    assert home_folder(other).id != first.id


def test_an_id_that_can_not_be_written_is_a_problem_of_the_disk(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    (home.root / FOLDER_ID).mkdir()
    with pytest.raises(StoreUnavailable, match=r"folder\.id can't be read or written"):
        home_folder(home)


async def test_gateways_that_start_at_once_get_the_same_id(tmp_path: Path, shared: Path) -> None:
    homes = [a_home(tmp_path / f"home{number}") for number in range(8)]
    found: set[FolderId] = set()

    async def start(home: Home) -> None:
        found.add((await anyio.to_thread.run_sync(shared_folder, shared, home)).id)

    async with anyio.create_task_group() as group:
        for home in homes:
            group.start_soon(start, home)
    assert found == {FolderId((shared / FOLDER_ID).read_text().strip())}


def test_a_shared_folder_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    home, missing = a_home(tmp_path / "home"), tmp_path / "missing"
    with pytest.raises(ConfigError, match=r"there is no folder .*missing: create it, or mount it"):
        shared_folder(missing, home)
    assert not missing.exists()
    missing.touch()
    with pytest.raises(ConfigError, match="there is no folder"):
        shared_folder(missing, home)


def test_a_shared_folder_that_can_not_be_written_is_refused(tmp_path: Path, shared: Path) -> None:
    (shared / FOLDER_ID).mkdir()
    with pytest.raises(ConfigError, match=r"shared can't be used .* write files and to lock them"):
        shared_folder(shared, a_home(tmp_path / "home"))


@pytest.fixture
def read_only(shared: Path) -> Iterator[Path]:
    """Yields a folder in which this user is not allowed to write."""
    if os.geteuid() != 0:
        shared.chmod(0o500)
        yield shared
        return
    # Root may write in every folder, except on a file system that is read-only.
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,mode=700", "tmpfs", shared], check=True)
    try:
        yield shared
    finally:
        subprocess.run(["umount", "-l", shared], check=True)


def test_a_shared_folder_that_is_read_only_is_refused(tmp_path: Path, read_only: Path) -> None:
    with pytest.raises(ConfigError, match="this user has no permission to write in"):
        shared_folder(read_only, a_home(tmp_path / "home"))


def test_only_its_owner_may_read_a_shared_folder(tmp_path: Path, shared: Path) -> None:
    shared.chmod(0o755)
    shared_folder(shared, a_home(tmp_path / "home"))
    assert stat.S_IMODE(shared.stat().st_mode) == 0o700
    assert stat.S_IMODE((shared / FOLDER_ID).stat().st_mode) == 0o600


def test_an_empty_mount_point_is_not_taken_for_the_shared_folder(
    tmp_path: Path, shared: Path
) -> None:
    home = a_home(tmp_path / "home")
    first = shared_folder(shared, home)
    assert shared_folder(shared, home) == first
    shared.rename(tmp_path / "unmounted")
    shared.mkdir(mode=0o700)
    with pytest.raises(ConfigError, match="not the folder that was used at the last start: mount"):
        shared_folder(shared, home)
    assert not list(shared.iterdir())
    (home.run / "shared_folder").unlink()
    assert shared_folder(shared, home).id != first.id


def test_another_shared_folder_may_be_configured(tmp_path: Path, shared: Path) -> None:
    home, second = a_home(tmp_path / "home"), tmp_path / "second"
    second.mkdir(mode=0o700)
    assert shared_folder(shared, home).id != shared_folder(second, home).id
