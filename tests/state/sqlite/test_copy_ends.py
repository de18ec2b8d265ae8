"""A SQLite database can be the source or the target of a copy."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from hermes.state.paths import STORE_NAME, Home
from hermes.state.sqlite.copy_ends import sqlite_source, sqlite_target, unfinished_copy
from hermes.state.sqlite.store import open_store
from hermes.state.table_shapes import our_tables
from hermes.types.store_copy import CopyRefused


async def test_every_table_with_data_is_copied(tmp_path: Path) -> None:
    async with open_store(tmp_path / STORE_NAME):
        pass
    with closing(sqlite3.connect(tmp_path / STORE_NAME)) as database:
        found = database.execute(
            "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
            " and name not like 'messages_fts%'"
        )
        expected = {name for (name,) in found}
    async with sqlite_source(Home(root=tmp_path)) as source:
        shapes = await source.store.read(source.shapes)
    assert {shape.name for shape in shapes} == expected == our_tables()
    assert all(shape.key for shape in shapes)


async def test_the_target_file_exists_only_when_the_copy_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "folder" / "new.db"
    with pytest.raises(ZeroDivisionError):
        async with sqlite_target(target, "elsewhere"):
            raise ZeroDivisionError
    assert not target.exists()
    async with sqlite_target(target, "elsewhere"):
        assert unfinished_copy(target).exists()
    assert [path.name for path in target.parent.iterdir()] == ["new.db"]


async def test_a_target_with_an_existing_database_or_wal_is_refused(tmp_path: Path) -> None:
    for name in ("a.db", "b.db-wal"):
        (tmp_path / name).touch()
    for name in ("a.db", "b.db"):
        with pytest.raises(CopyRefused, match="exists already: move it"):
            async with sqlite_target(tmp_path / name, "elsewhere"):
                pass


async def test_two_copies_to_one_file_exclude_each_other(tmp_path: Path) -> None:
    async with sqlite_target(tmp_path / "new.db", "elsewhere"):
        with pytest.raises(CopyRefused, match="another process copies a store to"):
            async with sqlite_target(tmp_path / "new.db", "elsewhere"):
                pass


async def test_a_database_that_appears_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(CopyRefused, match="was made by another process meanwhile"):
        async with sqlite_target(tmp_path / "new.db", "elsewhere"):
            (tmp_path / "new.db").write_text("precious")
    assert (tmp_path / "new.db").read_text() == "precious"


async def test_a_copy_that_was_killed_before_its_last_step_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "new.db"
    async with sqlite_target(target, "elsewhere"):
        pass
    unfinished_copy(target).hardlink_to(target)
    with pytest.raises(CopyRefused, match="exists already"):
        async with sqlite_target(target, "elsewhere"):
            pass
    assert not unfinished_copy(target).exists()
