"""The shared migrations are translated for PostgreSQL."""

import re
from pathlib import Path

from hermes.state.postgres.ddl import migrations
from hermes.state.schema import MIGRATIONS
from hermes.testing.postgres import shared_databases


def test_every_shared_migration_is_translated() -> None:
    assert [name for name, _ in migrations()] == [name for name, _ in MIGRATIONS]


def test_no_type_of_sqlite_is_left() -> None:
    for _, script in migrations():
        assert not re.search(r"\b(blob|real|without rowid|virtual|fts5)\b", script)


def test_times_and_integers_have_8_bytes(tmp_path: Path) -> None:
    databases = shared_databases()
    found = databases.server.execute(
        "select distinct data_type from information_schema.columns where table_schema = 'public'",
        databases.name_of(tmp_path),
    )
    assert {row[0] for row in found} == {
        "bigint",
        "bytea",
        "double precision",
        "text",
        "tsvector",
    }
