"""Stores the long content (body) of a row in pieces, in another table, so that rows and commits
stay small. The pieces of a body are found by its hash. Pieces may be committed before the row that
refers to the body. The transaction that writes the row adds the pieces that are still missing.
"""

import hashlib
from collections.abc import Sequence

from hermes.state import session_lock
from hermes.types.store import Row, Work

LONG_BYTES = 262_144
"""A body with more bytes than this is stored in pieces."""
PIECE_BYTES = 524_288
_LOCK = "body_pieces"
"""Name of the lock that is held while pieces are looked up or deleted, so that no row refers to
deleted pieces."""


def split(body: bytes) -> list[bytes]:
    return [body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES)]


def digest(body: bytes) -> str:
    """Returns the hash of a body, under which its pieces are stored."""
    return hashlib.sha256(body).hexdigest()


def add_piece(name: str, index: int, piece: bytes) -> Work[None]:
    """Stores a piece, if it is not stored yet."""
    yield (
        "insert into body_pieces (body, idx, piece) values (?, ?, ?) on conflict do nothing",
        (name, index, piece),
    )


def store(body: bytes) -> Work[tuple[bytes, str | None]]:
    """Stores the pieces of a long body. Returns the two values that the caller must store in the
    row. For a long body, they are an empty body and the name of the pieces. For a short body, they
    are the body itself and None."""
    if len(body) <= LONG_BYTES:
        return body, None
    name = digest(body)
    yield from session_lock.lock(_LOCK)
    rows = yield "select idx from body_pieces where body = ?", (name,)
    stored = {row[0] for row in rows}
    for index, piece in enumerate(split(body)):
        if index not in stored:
            yield from add_piece(name, index, piece)
    return b"", name


def read(body: bytes, name: str | None) -> Work[bytes]:
    """Returns the whole body of a row. `body` and `name` are the two values that `store` has
    returned for the row."""
    if name is None:
        return body
    rows = yield "select piece from body_pieces where body = ? order by idx", (name,)
    return b"".join(row[0] for row in rows)


def filled(rows: Sequence[Row], body: int, name: int) -> Work[list[Row]]:
    """Returns the rows with their whole bodies. `body` and `name` are the indexes of the columns
    that hold a body and the name of its pieces."""
    found = list(rows)
    for index, row in enumerate(found):
        if row[name] is not None:
            whole = yield from read(row[body], row[name])
            found[index] = (*row[:body], whole, *row[body + 1 :])
    return found


def forget_unused() -> Work[None]:
    """Deletes the pieces of bodies that no row refers to."""
    yield from session_lock.lock(_LOCK)
    yield (
        "delete from body_pieces where body not in"
        " (select body_name from inbox where body_name is not null"
        " union all select body_name from messages where body_name is not null)",
        (),
    )
