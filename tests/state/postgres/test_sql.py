"""The shared statements are translated for PostgreSQL."""

import pytest

from hermes.state.postgres.sql import prepared
from hermes.state.session_lock import LOCK_SESSION


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("select a from b where c = ? and d = ?", "select a from b where c = $1 and d = $2"),
        ("select '?', \"?\" from b where c = ?", "select '?', \"?\" from b where c = $1"),
        ("select 'it''s ?' where c = ?", "select 'it''s ?' where c = $1"),
        ("select 1 -- why?\n where c = ?", "select 1 -- why?\n where c = $1"),
        ("select c like '100%' where d = ?", "select c like '100%' where d = $1"),
    ],
)
def test_parameters_are_numbered_and_literals_are_not_changed(ours: str, theirs: str) -> None:
    assert prepared(ours).text == theirs.encode()


@pytest.mark.parametrize(
    ("sql", "returns_rows", "writes"),
    [
        ("select a from b", True, False),
        ("with c as (select a from b) select a from c", True, False),
        ("insert into b (a) values (?)", False, True),
        ("insert into b (a) values (?) returning a", True, True),
        ("update b set a = 'returning' where c = ?", False, True),
        ("delete from b", False, True),
        (LOCK_SESSION, False, False),
    ],
)
def test_only_statements_that_return_rows_are_waited_for(
    sql: str, returns_rows: bool, writes: bool
) -> None:
    statement = prepared(sql)
    assert (statement.returns_rows, statement.writes) == (returns_rows, writes)


def test_a_statement_is_translated_once() -> None:
    assert prepared("select 1") is prepared("select 1")
