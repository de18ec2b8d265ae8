"""The lock of a session, which its transactions take first.

Two transactions of one session must see each other's writes. Without this, a message that is
accepted while the previous turn is being closed could wait for ever. SQLite has one writer and
needs no lock. PostgreSQL runs transactions side by side, and holds the lock until the commit.
"""

from hermes.types.store import Work

LOCK_SESSION = "select lock_session(?)"


def lock(session: str) -> Work[None]:
    """Waits for other transactions of the session. Rows that were read before this call must be
    read again."""
    yield LOCK_SESSION, (session,)
