"""The lock of a session. The transactions of the session take it before they change anything.

With the lock, each transaction sees the writes of earlier transactions of the session. Otherwise a
message that is accepted while the previous turn is being closed could wait for ever. SQLite has one
writer and needs no lock. PostgreSQL runs transactions concurrently, and a transaction holds the
lock until it ends.
"""

from hermes.types.store import Work

LOCK_SESSION = "select lock_session(?)"


def lock(session: str) -> Work[None]:
    """Waits until no other transaction of the session runs. Rows that were read before this call
    may be outdated and must be read again."""
    yield LOCK_SESSION, (session,)
