"""A database is compared with the schema of the version that wrote it."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.schema_check import missing_part


def test_a_complete_database_lacks_nothing(tmp_path: Path) -> None:
    with closing(prepare(tmp_path / STORE_NAME)) as connection:
        assert missing_part(connection) is None


def test_the_error_names_a_missing_column(tmp_path: Path) -> None:
    with closing(prepare(tmp_path / STORE_NAME)) as connection:
        connection.execute("alter table turns rename column code to other")
        assert "'turns', 'code'" in (missing_part(connection) or "")


def test_an_empty_database_has_version_0_and_lacks_nothing() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        assert missing_part(connection) is None
