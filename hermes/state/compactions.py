"""Summaries that replace the middle of a conversation, and exchanges that were removed from it. The
messages themselves are never deleted."""

import logging

import msgspec

from hermes.state.codec import checksum, decode_message, encode
from hermes.types.messages import Message, UserMessage
from hermes.types.store import Work
from hermes.types.value import Value

log = logging.getLogger(__name__)

Span = tuple[int, int]
"""The numbers of the first and the last row that one message of a history represents. A summary
represents all rows that it replaces."""


class Compaction(Value):
    id: int
    span: Span
    summary: Message | None
    """The message that replaces the rows; None if the rows were removed from the conversation."""


class Condensed(Value):
    """The rows that a summary replaces. They belong to one conversation of a session."""

    session: str
    generation: int
    span: Span


def compact(what: Condensed, summary: UserMessage, turn: str, now: float) -> Work[None]:
    """Stores a summary that replaces the rows in the history, and removes the session's stored
    system prompt, so that a new prompt is written. The rows themselves are kept."""
    body = encode(summary)
    rows = yield (
        "insert into compactions (session, generation, first, last, summary, crc, turn, at)"
        " values (?, ?, ?, ?, ?, ?, ?, ?) returning id",
        (what.session, what.generation, *what.span, body, checksum(body), turn, now),
    )
    # The generation is compared, because /new may have begun a new conversation in the meantime.
    # The summary does not apply to the new conversation.
    yield (
        "update sessions set compaction = ?, prompt = null, summarise = 0"
        " where key = ? and generation = ?",
        (rows[0][0], what.session, what.generation),
    )


def hide(what: Condensed, now: float) -> Work[None]:
    """Removes the rows from the conversation. The store keeps them."""
    body = encode(UserMessage(text="", summary=True))
    rows = yield (
        "insert into compactions (session, generation, first, last, summary, crc, removed, turn,"
        " at) values (?, ?, ?, ?, ?, ?, 1, '', ?) returning id",
        (what.session, what.generation, *what.span, body, checksum(body), now),
    )
    yield "update sessions set compaction = ? where key = ?", (rows[0][0], what.session)


def active(session: str, generation: int) -> Work[list[Compaction]]:
    """Returns the summaries that are still in use and the ranges of removed rows, in the order of
    the conversation. A summary that a later summary has replaced is left out. A summary that can't
    be read is also left out, so that the history shows the original rows.
    """
    rows = yield (
        "select id, first, last, summary, crc, removed from compactions"
        " where session = ? and generation = ? order by id desc",
        (session, generation),
    )
    found: list[Compaction] = []
    for id, first, last, body, crc, removed in rows:
        if any(one.span[0] <= first and last <= one.span[1] for one in found):
            continue
        try:
            summary = decode_message(body, crc)
        except msgspec.DecodeError as error:
            log.error("summary %s of %s can't be read, it is not used: %s", id, session, error)
        else:
            shown = None if removed else summary
            found.append(Compaction(id=id, span=(first, last), summary=shown))
    return sorted(found, key=lambda one: one.span)


def restore(session: str) -> Work[int]:
    """Deletes the session's summaries, so that its history shows the messages again. Returns the
    number of deleted summaries."""
    rows = yield (
        "delete from compactions where session = ? and removed = 0 and generation ="
        " (select generation from sessions where key = ?) returning id",
        (session, session),
    )
    yield (
        "update sessions set prompt = null, compaction = coalesce((select max(id) from compactions"
        " where session = sessions.key and generation = sessions.generation), 0) where key = ?",
        (session,),
    )
    return len(rows)
