"""Other users can't read a home, its key and its `.env`."""

import logging
import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path, PosixPath

import pytest

from hermes.settings import load
from hermes.state.paths import Home
from hermes.state.privacy import check_permissions, protect, restrict_to_owner
from hermes.types.errors import ConfigError

NOBODY = 65534

LOAD_AS_NOBODY = """
import os, sys
from pathlib import Path
from hermes.settings import load
from hermes.types.errors import ConfigError
# The modules are imported before the process becomes `nobody`, because `nobody` perhaps can't read
# the files of the modules.
os.setgid(65534)
os.setuid(65534)
try:
    load(Path(sys.argv[1]), {})
except ConfigError as error:
    print(error)
"""
CHECK_AS_NOBODY = """
import os, sys
from pathlib import Path
from hermes.state.paths import Home
from hermes.state.privacy import check_permissions
os.setgid(65534)
os.setuid(65534)
(found,) = check_permissions(Home(root=Path(sys.argv[1])))
print(found.level, found.text)
"""
READ_AS_NOBODY = """
import os, sys
os.setgid(65534)
os.setuid(65534)
try:
    print(open(sys.argv[1]).read())
except PermissionError:
    print("refused")
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def run_as_nobody(code: str, path: Path) -> str:
    if os.getuid():
        pytest.skip("only root can become another user")
    done = subprocess.run(
        [sys.executable, "-c", code, path],
        cwd="/",
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Returns a home that all users of the machine can read."""
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    home = Home(root=tmp_path / "my home")
    home.root.mkdir()
    home.root.chmod(0o755)
    for path in (home.dotenv, home.api_key):
        path.write_text("A=1\n")
        path.chmod(0o644)
    return home


def test_every_file_is_restricted_with_a_warning(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        load(home.root, {"API_SERVER_ENABLED": "no"})
    assert (mode(home.root), mode(home.dotenv), mode(home.api_key)) == (0o700, 0o600, 0o600)
    assert [one.getMessage() for one in caplog.records] == [
        f"other users could read {home.root}: its permissions are now 700",
        f"other users could read {home.dotenv}: its permissions are now 600",
        f"other users could read {home.api_key}: its permissions are now 600",
    ]


@pytest.mark.parametrize("name", ["dotenv", "api_key"])
def test_other_users_can_not_read_a_key_after_it_was_restricted(home: Home, name: str) -> None:
    path: Path = {"dotenv": home.dotenv, "api_key": home.api_key}[name]
    assert run_as_nobody(READ_AS_NOBODY, path) == "A=1"
    protect(home)
    home.root.chmod(0o755)
    assert run_as_nobody(READ_AS_NOBODY, path) == "refused"


@pytest.mark.parametrize("name", ["root", "dotenv", "api_key"])
def test_a_file_that_another_user_owns_and_all_can_read_is_refused(home: Home, name: str) -> None:
    """The process runs as `nobody`, and root owns the file."""
    path: Path = {"root": home.root, "dotenv": home.dotenv, "api_key": home.api_key}[name]
    for owned in (home.root, home.dotenv, home.api_key):
        if owned != path:
            os.chown(owned, NOBODY, NOBODY)
            owned.chmod(0o700 if owned == home.root else 0o600)
    told = run_as_nobody(LOAD_AS_NOBODY, home.root)
    wanted = "700" if path == home.root else "600"
    assert f"other users can read {path}" in told
    assert f"chmod {wanted} {shlex.quote(str(path))}`" in told


class PathWithoutPermissions(PosixPath):
    """A path whose permissions can't be changed: `chmod` does nothing, as on some disks."""

    def chmod(self, mode: int, *, follow_symlinks: bool = True) -> None:
        pass


def test_a_file_on_a_disk_that_ignores_permissions_is_refused(tmp_path: Path) -> None:
    path = PathWithoutPermissions(tmp_path / "api_server.key")
    path.touch(0o644)
    with pytest.raises(ConfigError, match="another disk"):
        restrict_to_owner(path)


def test_a_file_in_the_place_of_the_home_keeps_its_permissions(tmp_path: Path) -> None:
    file = tmp_path / "home"
    file.write_text("no folder")
    file.chmod(0o644)
    protect(Home(root=file))
    assert mode(file) == 0o644


def test_a_device_that_replaces_a_file_keeps_its_permissions(tmp_path: Path) -> None:
    home = Home(root=tmp_path)
    home.dotenv.symlink_to("/dev/null")
    before = Path("/dev/null").stat().st_mode
    protect(home)
    assert Path("/dev/null").stat().st_mode == before


def test_a_check_of_a_private_home_is_ok(tmp_path: Path) -> None:
    home = Home(root=tmp_path / "home")
    (missing,) = check_permissions(home)
    assert (missing.level, "does not exist yet" in missing.text) == ("ok", True)
    home.root.mkdir(mode=0o700)
    home.dotenv.touch(mode=0o600)
    (found,) = check_permissions(home)
    assert (found.level, found.hint) == ("ok", "")


def test_a_check_names_the_files_that_others_can_read_and_changes_nothing(tmp_path: Path) -> None:
    home = Home(root=tmp_path / "the home")
    home.root.mkdir(mode=0o700)
    home.dotenv.touch()
    home.dotenv.chmod(0o644)
    (found,) = check_permissions(home)
    assert (found.level, found.text) == ("warning", f"other users can read {home.dotenv}")
    assert f"chmod go= '{home.dotenv}'" in found.hint
    assert stat.S_IMODE(home.dotenv.stat().st_mode) == 0o644


def test_a_check_of_the_home_of_another_user_is_an_error(home: Home) -> None:
    home.root.chmod(0o755)
    told = run_as_nobody(CHECK_AS_NOBODY, home.root)
    assert told == f"error {home.root} can't be read and written"
