"""The checks of the database find damage and change nothing."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from hermes.state.paths import Home
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.files import wal_of
from hermes.state.sqlite.health import LARGE_WAL, check_database
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import put
from hermes.types.checks import Check

SECONDS = 60.0


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(root=tmp_path)


def sole(home: Home, seconds: float = SECONDS) -> Check:
    (found,) = check_database(home, seconds)
    return found


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_home_without_a_database_is_ok(home: Home) -> None:
    assert (sole(home).level, sole(home).text) == ("ok", f"{home.store} does not exist yet")
    assert not home.store.exists()


def test_a_sound_database_is_ok_and_unchanged(home: Home) -> None:
    prepare(home.store).close()
    before = contents(home.root)
    found = sole(home)
    assert found.level == "ok"
    assert f"schema {len(MIGRATIONS)}, no damage found" in found.text
    assert contents(home.root) == before


async def test_a_database_that_a_process_uses_is_checked_with_its_wal(home: Home) -> None:
    async with open_store(home.store) as store:
        await store.run(put, "a")
        before = contents(home.root)
        assert wal_of(home.store).name in before
        # The whole schema is still in the WAL, so the check finds it only if it reads the WAL.
        assert f"schema {len(MIGRATIONS)}, no damage found" in sole(home).text
        after = contents(home.root)
        assert {*after} == {*before}
        assert after[home.store.name] == before[home.store.name]
        assert after[wal_of(home.store).name] == before[wal_of(home.store).name]
        await store.run(put, "b")


def test_an_earlier_schema_is_migrated_at_the_next_start(home: Home) -> None:
    with closing(prepare(home.store)) as connection:
        connection.execute("pragma user_version = 1")
    assert f"schema 1 (the next start migrates it to {len(MIGRATIONS)})" in sole(home).text


def test_a_newer_schema_is_an_error(home: Home) -> None:
    with closing(prepare(home.store)) as connection:
        connection.execute("pragma user_version = 999")
    found = sole(home)
    assert (found.level, "schema 999" in found.text) == ("error", True)
    assert "install that version" in found.hint


def test_a_missing_table_is_an_error(home: Home) -> None:
    with closing(prepare(home.store)) as connection:
        connection.execute("drop table chats")
    found = sole(home)
    assert (found.level, "chats" in found.text) == ("error", True)
    assert "snapshot" in found.hint


@pytest.mark.parametrize("place", [0, 8192], ids=["the header", "a page"])
def test_damage_is_an_error_and_is_not_repaired(home: Home, place: int) -> None:
    prepare(home.store).close()
    with home.store.open("r+b") as file:
        file.seek(place)
        file.write(b"\xff" * 4096)
    before = contents(home.root)
    found = sole(home)
    assert (found.level, "damaged" in found.text) == ("error", True)
    assert "snapshot" in found.hint
    assert contents(home.root) == before


def test_a_truncated_database_is_an_error_and_keeps_its_wal(home: Home) -> None:
    home.store.touch()
    wal_of(home.store).write_bytes(b"commits")
    assert (sole(home).level, sole(home).text) == ("error", f"{home.store} was truncated")
    assert wal_of(home.store).read_bytes() == b"commits"


def test_a_file_that_is_not_a_database_is_an_error(home: Home) -> None:
    home.store.mkdir()
    found = sole(home)
    assert (found.level, "can't be read" in found.text) == ("error", True)


def test_a_large_wal_is_a_warning(home: Home) -> None:
    with closing(prepare(home.store)):
        os.truncate(wal_of(home.store), LARGE_WAL)
        first, second = check_database(home, SECONDS)
    assert (first.level, second.level) == ("ok", "warning")
    assert "268 MB" in second.text
    assert "backup" in second.hint


def test_the_search_for_damage_in_a_large_database_ends_in_time(home: Home) -> None:
    with closing(prepare(home.store)) as connection:
        connection.execute("create table numbers (a integer primary key, b)")
        connection.execute("create index b on numbers (b)")
        count = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)"
        connection.execute(f"insert into numbers {count} select i, i from n")
    found = sole(home, seconds=-1.0)
    assert (found.level, "not checked completely" in found.text) == ("ok", True)
    with closing(connect(home.store)) as connection:
        assert connection.execute("select count(*) from numbers").fetchone()[0] == 60000
