"""The migration that adds approvals keeps the questions that earlier versions have stored."""

import sqlite3
from contextlib import closing
from pathlib import Path

from hermes.state.approval_tables import APPROVALS
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.migration import statements


def test_questions_of_earlier_versions_are_kept(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "db", isolation_level=None)) as connection:
        for _, script in MIGRATIONS[: MIGRATIONS.index(APPROVALS)]:
            for statement in statements(script):
                connection.execute(statement)
        connection.execute(
            "insert into questions values ('q', 't', 'c', 's', 'main', 'ann', 'question', 'Who?',"
            " x'5B5D', '', 'answered', 'me', 'ann', 1.0, 2.0, 3.0)"
        )
        before = connection.execute("select * from questions").fetchall()
        for statement in statements(APPROVALS[1]):
            connection.execute(statement)
        (after,) = connection.execute("select * from questions").fetchall()
        assert after == (*before[0], "", "", None, None)
        connection.execute("update questions set state = 'cancelled'")
