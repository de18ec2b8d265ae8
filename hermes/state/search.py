"""Searches the messages that an audience may see."""

from hermes.state.audience import Audience, Operator, Person, Room
from hermes.types.store import Row, Work
from hermes.types.value import Value

QUERY_WORDS = 64
"""Maximum number of words of a query. More words make a search slower and no better."""
SNIPPET_TOKENS = 32
"""Number of words in a snippet: the part of a message around the words that were found."""

# These SQL fragments are specific to SQLite's full-text index. Other databases replace them.
SNIPPET_SQL = f"snippet(messages_fts, 0, '', '', '…', {SNIPPET_TOKENS})"
MATCHES_SQL = "messages_fts f join messages m on m.id = f.rowid and messages_fts match ?"
BEST_FIRST_SQL = "order by rank"


class FoundMessage(Value):
    """A found message. In the results of a search, `text` is only the snippet that matches."""

    number: int
    """The number of the message's row."""
    session: str
    role: str
    text: str
    at: float


def search(
    query: str, audience: Audience, *, turn: str = "", session: str = "", limit: int = 20
) -> Work[list[FoundMessage]]:
    """Returns messages that contain words of the query, the best match first.

    Leaves out the messages of `turn`, and the messages of the current conversation of `session`.
    """
    words = query.replace("\0", " ").replace('"', " ").split()
    if not words:
        return []
    heard, by = _heard(audience)
    rows = yield (
        f"select m.id, m.session, m.role, {SNIPPET_SQL}, m.at from {MATCHES_SQL}"  # noqa: S608
        f" where m.transient = 0 and {heard} and m.turn <> ?"
        " and (m.session <> ? or m.generation < (select generation from sessions where key = ?))"
        f" {BEST_FIRST_SQL} limit ?",
        (
            " OR ".join(f'"{word}"' for word in dict.fromkeys(words[:QUERY_WORDS])),
            *by,
            turn,
            session,
            session,
            limit,
        ),
    )
    return [_found(row) for row in rows]


def around(number: int, audience: Audience, span: int = 3) -> Work[list[FoundMessage]]:
    """Returns the message with this number, and up to `span` messages before it and `span` messages
    after it in the same conversation. Messages that the audience is not allowed to see are left
    out."""
    heard, by = _heard(audience)
    spoken = (
        "select m.id, m.session, m.role, m.text, m.at from messages hit"  # noqa: S608
        " join messages m on m.session = hit.session and m.generation = hit.generation"
        f" where hit.id = ? and m.transient = 0 and m.text <> '' and {heard}"
    )
    before = yield (
        f"{spoken} and m.id <= ? order by m.id desc limit ?",
        (
            *(number, *by, number),
            span + 1,
        ),
    )
    after = yield f"{spoken} and m.id > ? order by m.id limit ?", (number, *by, number, span)
    return [_found(row) for row in (*reversed(before), *after)]


def _heard(audience: Audience) -> tuple[str, tuple[str | int, ...]]:
    """Returns an SQL condition, and its parameters. The condition selects the messages that the
    audience is allowed to see, from a table with the alias `m`."""
    match audience:
        case Person(agent=agent, person=person):
            return "m.agent = ? and m.person = ?", (agent, person)
        case Room(agent=agent, account=account, sessions=sessions):
            # A room is a shared chat. Session keys are compared instead of chat ids, because a
            # private chat might have the same chat id as the room.
            return (
                "m.agent = ? and m.account = ?"
                " and (m.session = ? or substr(m.session, 1, cast(? as integer)) = ?)",
                (agent, account, sessions, len(sessions) + 1, f"{sessions}:"),
            )
        case Operator(agent=agent):
            return ("true", ()) if agent is None else ("m.agent = ?", (agent,))


def _found(row: Row) -> FoundMessage:
    number, session, role, text, at = row
    return FoundMessage(number=number, session=session, role=role, text=text, at=at)
