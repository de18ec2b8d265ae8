"""Files of messages are named by their content, and are kept as long as they are used."""

import os
import time
from pathlib import Path

import pytest

from hermes.state.media import REFRESH_SECONDS, MediaCache
from hermes.types.errors import StoreUnavailable

NEVER = 0.0
LONG = REFRESH_SECONDS + 100


@pytest.fixture
def cache(tmp_path: Path) -> MediaCache:
    return MediaCache(tmp_path / "media")


def age(tmp_path: Path, name: str, seconds: float) -> Path:
    """Makes the file look as if it was last used `seconds` seconds ago. Returns its path."""
    path = tmp_path / "media" / name
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


def test_the_name_of_a_file_depends_only_on_its_content(cache: MediaCache) -> None:
    name = cache.keep(b"\x89PNG\0", stateless=False)
    assert cache.read(name) == b"\x89PNG\0"
    assert cache.keep(b"\x89PNG\0", stateless=False) == name
    assert cache.keep(b"other", stateless=False) != name


def test_requests_and_sessions_do_not_share_files(cache: MediaCache, tmp_path: Path) -> None:
    names = [cache.keep(b"x", stateless=stateless) for stateless in (True, False)]
    assert len(set(names)) == 2
    for name in names:
        age(tmp_path, name, LONG)
    cache.forget(time.time() - 60, NEVER)
    assert [cache.read(name) for name in names] == [None, b"x"]


def test_only_the_owner_can_read_the_files_and_folders(cache: MediaCache, tmp_path: Path) -> None:
    cache.keep(b"secret", stateless=True)
    found = [tmp_path / "media", *(tmp_path / "media").rglob("*")]
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in found}
    assert modes == {(True, 0o700), (False, 0o600)}


@pytest.mark.parametrize("again", ["keep", "read"])
def test_a_use_extends_the_life_of_the_file(cache: MediaCache, tmp_path: Path, again: str) -> None:
    name = cache.keep(b"x", stateless=False)
    age(tmp_path, name, LONG)
    if again == "keep":
        cache.keep(b"x", stateless=False)
    else:
        cache.read(name)
    cache.forget(NEVER, time.time() - 60)
    assert cache.read(name) == b"x"


def test_a_file_that_is_not_used_is_deleted_and_can_be_stored_again(
    cache: MediaCache, tmp_path: Path
) -> None:
    name = cache.keep(b"x", stateless=False)
    age(tmp_path, name, LONG)
    cache.forget(NEVER, time.time() - 60)
    assert cache.read(name) is None
    assert cache.keep(b"x", stateless=False) == name
    assert cache.read(name) == b"x"


def test_a_half_written_file_is_deleted_after_a_crash(cache: MediaCache, tmp_path: Path) -> None:
    cache.keep(b"x", stateless=True)
    (tmp_path / "media" / "requests" / ".half.tmp").write_bytes(b"")
    left = age(tmp_path, "requests/.half.tmp", LONG)
    cache.forget(time.time() - 60, NEVER)
    assert not left.exists()


@pytest.mark.parametrize(
    "name", ["", "../secret", "requests/../../secret", "requests/" + "0" * 64, "/etc/passwd"]
)
def test_only_files_of_the_cache_can_be_read(cache: MediaCache, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_text("no")
    cache.keep(b"x", stateless=True)
    assert cache.read(name) is None


def test_deletion_in_an_empty_home_does_nothing(cache: MediaCache, tmp_path: Path) -> None:
    cache.forget(time.time(), time.time())
    assert not (tmp_path / "media").exists()


def test_an_error_of_the_disk_raises_one_of_our_errors(tmp_path: Path) -> None:
    (tmp_path / "media").write_text("not a folder")
    with pytest.raises(StoreUnavailable, match="can't be stored"):
        MediaCache(tmp_path / "media").keep(b"x", stateless=True)


def test_a_file_is_kept_longer_than_the_interval_at_which_uses_are_recorded(
    cache: MediaCache, tmp_path: Path
) -> None:
    name = cache.keep(b"x", stateless=True)
    age(tmp_path, name, REFRESH_SECONDS - 100)
    cache.read(name)
    cache.forget(time.time(), NEVER)
    assert cache.read(name) == b"x"
