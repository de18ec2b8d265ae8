"""Messages that arrive in parts: albums, and long texts that a platform has cut. Each part is a row
of the inbox. The first part waits until all parts have arrived, and its turn answers all parts.
"""

import logging

import msgspec

from hermes.state import bodies
from hermes.state.codec import decode_event
from hermes.types.identity import FolderId
from hermes.types.messages import MessageEvent
from hermes.types.store import Work
from hermes.types.value import Value

log = logging.getLogger(__name__)

CUT, COMPLETE = "cut", "complete"
"""Values of `awaits`. CUT: the next message may continue this message. COMPLETE: all parts have
arrived."""


class FirstPart(Value):
    """A waiting message to which another part can be added."""

    id: str
    awaits: str


def awaited(event: MessageEvent) -> str | None:
    """Returns the value of the column `awaits` for the message. The value says which further parts
    may follow. It is None if the message does not consist of parts."""
    if event.album:
        return f"album:{event.album}"
    return None if event.cut_with is None else CUT


def first_part(session: str, event: MessageEvent, now: float) -> Work[FirstPart | None]:
    """Returns the waiting message that the event continues. The two have the same sender. Returns
    None if the event continues no message. The caller must hold the lock of the session."""
    if event.album:
        rows = yield (
            "select id, awaits from inbox where session = ? and state = 'pending'"
            " and awaits = ? and user_id = ? order by seq limit 1",
            (session, awaited(event), event.source.user_id),
        )
    else:
        rows = yield (
            "select id, awaits from inbox where session = ? and state = 'pending'"
            " and awaits = ? and user_id = ? and not_before > ? and seq ="
            " (select max(seq) from inbox where session = ? and state = 'pending')",
            (session, CUT, event.source.user_id, now, session),
        )
    return FirstPart(id=rows[0][0], awaits=rows[0][1]) if rows else None


def wait(id: str, awaits: str, until: float) -> Work[None]:
    """Lets the message wait for further parts until the time `until`. If `until` is 0, the message
    does not wait."""
    yield "update inbox set awaits = ?, not_before = ? where id = ?", (awaits, until, id)


def use_folder(id: str, folder: FolderId) -> Work[None]:
    """Stores, in the row of the first part, the folder that contains the attachments of a later
    part. Does nothing if the row already has a folder."""
    yield "update inbox set folder = coalesce(folder, ?) where id = ?", (folder, id)


def parts_of(id: str) -> Work[list[tuple[str, MessageEvent]]]:
    """Returns the id and the event of each part, in the order of their arrival. A part that can't
    be read is left out."""
    rows = yield (
        "select id, event, crc, body_name from inbox"
        " where id = ? or (turn = ? and turn <> id and steers is null and state = 'bound')"
        " order by seq",
        (id, id),
    )
    found = []
    for part, body, crc, _ in (yield from bodies.filled(rows, 1, 3)):
        try:
            found.append((part, decode_event(body, crc)))
        except msgspec.DecodeError as error:
            log.error("part %s of message %s can't be read, it is left out: %s", part, id, error)
    return found


def next_due(now: float) -> Work[float | None]:
    """Returns the first time at which a message stops waiting for further parts; None if no message
    waits for parts."""
    rows = yield (
        "select min(not_before) from inbox where state = 'pending' and not_before > ?",
        (now,),
    )
    due: float | None = rows[0][0]
    return due
