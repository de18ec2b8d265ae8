"""Only the owner can read the database and the files around it."""

import os
import stat
from pathlib import Path

import anyio
import anyio.to_thread

from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.files import make_private, suspect, suspicion, wal_of
from hermes.state.sqlite.snapshots import copy
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import put


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_only_the_owner_can_read_the_database_its_wal_and_its_copies(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with open_store(tmp_path / "deep" / STORE_NAME) as store:
            await store.run(put, "a")
            await anyio.to_thread.run_sync(copy, store.path, tmp_path / "copy.db")
            files = [tmp_path / "copy.db", *store.path.parent.iterdir()]
            assert {path.name: mode(path) for path in files} == {
                "copy.db": 0o600,
                STORE_NAME: 0o600,
                f"{STORE_NAME}-wal": 0o600,
                f"{STORE_NAME}-shm": 0o600,
            }
    finally:
        os.umask(before)


def test_a_file_that_everybody_could_read_is_made_private(tmp_path: Path) -> None:
    (tmp_path / STORE_NAME).touch(0o644)
    make_private(tmp_path / STORE_NAME)
    assert mode(tmp_path / STORE_NAME) == 0o600


def test_the_files_around_a_database_are_named_after_it(tmp_path: Path) -> None:
    path = tmp_path / STORE_NAME
    suspect(path)
    assert suspicion(path).exists()
    assert {suspicion(path).name, wal_of(path).name} == {
        f"{STORE_NAME}-suspect",
        f"{STORE_NAME}-wal",
    }


def test_marking_a_missing_file_as_suspected_is_not_an_error(tmp_path: Path) -> None:
    suspect(tmp_path / "missing" / STORE_NAME)
