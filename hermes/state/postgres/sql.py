"""Translates the shared SQL statements for PostgreSQL: their parameters, their locks and their
full-text search.

The shared statements are written for SQLite, with `?` for a parameter. Only this module knows how
the statements of PostgreSQL differ from these statements.
"""

import functools
import re

from hermes.state.search import BEST_FIRST_SQL, MATCHES_SQL, SNIPPET_SQL, SNIPPET_TOKENS
from hermes.state.session_lock import LOCK_SESSION
from hermes.types.value import Value

_PARTS = re.compile(
    r"""
    (?P<kept> '(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* )   # literals, names and comments
    | (?P<parameter> \? )
    """,
    re.VERBOSE,
)
_LOCK_SESSION = "select pg_advisory_xact_lock(hashtextextended(?, 0))"
_REPLACED = (
    (LOCK_SESSION, _LOCK_SESSION),
    (SNIPPET_SQL, f"hermes_snippet(m.text, query, {SNIPPET_TOKENS})"),
    (MATCHES_SQL, "messages m join hermes_query(?) query on m.words @@ query"),
    (BEST_FIRST_SQL, "order by ts_rank(m.words, query) desc, m.id desc"),
)
"""SQL fragments of SQLite, each with the PostgreSQL fragment that replaces it. `ddl.py` creates the
functions that the PostgreSQL fragments call."""


class PreparedSql(Value):
    """A statement in the SQL of PostgreSQL."""

    text: bytes
    returns_rows: bool
    """Whether the statement returns rows. If it does, the caller waits for the rows. Otherwise the
    statement is sent together with the next statement."""
    writes: bool


@functools.lru_cache(maxsize=1024)
def prepared(sql: str) -> PreparedSql:
    """Translates the statement for PostgreSQL. The result is cached."""
    locks = sql == LOCK_SESSION
    for ours, theirs in _REPLACED:
        sql = sql.replace(ours, theirs)
    number = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal number
        if found["kept"]:
            return found[0]
        number += 1
        return f"${number}"

    text = _PARTS.sub(replace, sql)
    words = re.sub(r"'(?:[^']|'')*'", "''", text).lower().split()
    selects = words[0] in ("select", "with")
    return PreparedSql(
        text=text.encode(),
        returns_rows=(selects and not locks) or "returning" in words,
        writes=not selects,
    )
