"""Translates PostgreSQL's errors into ours."""

import re

import psycopg

from hermes.types.errors import ConfigError, HermesError, StoreUnavailable, TransactionConflict

_CONFLICTS = {
    "40001",  # serialization failure
    "40P01",  # deadlock
}
_LOST = {
    "57P01",  # the server stops, or an operator ended the connection
    "57P02",  # the server crashed
    "57P05",  # the connection was idle for too long
    "25P03",
    "08006",
    "08003",
    "08P01",  # a pooler lost its connection
}
_UNAVAILABLE = {
    "53",  # no room, no memory, too many connections
    "58",  # the disk fails
    "57",  # the server starts or stops
    "55",
}
ONE_OPEN_TURN = "one_open_turn"
"""The name of a unique index. A transaction violates this index only if another transaction has
committed in the meantime. The violation is therefore a conflict, and the transaction is retried."""
_READ_ONLY = "25006"
_UNKNOWN_DATABASE = re.compile(r'database ".*" does not exist')
_WRONG_PASSWORD = re.compile(r"authentication failed|no password supplied|role .* does not exist")


class ConnectionLost(TransactionConflict):
    """The connection was lost before the commit. Nothing was changed, and the transaction can be
    retried on a new connection."""


def translated_error(error: psycopg.Error, *, reading: bool = False) -> Exception:
    """Translates an error of the server into one of our errors. If the statement itself is wrong,
    returns the error unchanged."""
    code = error.sqlstate
    text = f"the database can't be used now ({_first_line(error)})"
    if code in _CONFLICTS or error.diag.constraint_name == ONE_OPEN_TURN:
        return TransactionConflict(text)
    if code is None or code in _LOST:
        return ConnectionLost(text)
    if code[:2] in _UNAVAILABLE or (code == _READ_ONLY and not reading):
        return StoreUnavailable(text)
    return error


def connect_error(error: psycopg.Error | OSError, place: str, *, starting: bool) -> HermesError:
    """Returns the error for a failed connection, with advice. `place` names the server without
    its password.

    While a store is being opened, a wrong setting becomes a ConfigError for the operator.
    """
    reason = _first_line(error)
    wrong = ConfigError if starting else StoreUnavailable
    if _WRONG_PASSWORD.search(reason):
        return wrong(
            f"{place} refuses the user or the password of store.url: correct HERMES_STORE_URL in"
            f" .env, or store.url in config.yaml ({reason})"
        )
    if _UNKNOWN_DATABASE.search(reason):
        return wrong(
            f"{place} has no such database: create it with `createdb`, or correct store.url"
            f" ({reason})"
        )
    return StoreUnavailable(
        f"{place} can't be reached ({reason}): is PostgreSQL running there, and is store.url right?"
    )


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__
