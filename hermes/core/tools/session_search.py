"""The tool that searches earlier conversations."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import msgspec

from hermes.state.audience import audience_of
from hermes.state.search import FoundMessage, around, search
from hermes.text.quote import shorten
from hermes.types.errors import ToolFailed
from hermes.types.store import Store
from hermes.types.tools import Tool, ToolContext

MOST_MESSAGES = 20
HIGHEST = 2**53
"""Highest message number that the model may give."""
SNIPPET = 300
MESSAGE = 1000


class SessionSearch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[str, msgspec.Meta(description="Words to look for.")] = ""
    limit: int = 5
    around: Annotated[
        int,
        msgspec.Meta(
            description="Instead: the number of a hit, to read on there.", ge=0, le=HIGHEST
        ),
    ] = 0


def session_search_tool(store: Store) -> Tool[SessionSearch]:
    """Returns the tool. The tool finds only messages that the audience of the turn (the people who
    can read its answer) has seen."""

    async def find(context: ToolContext, arguments: SessionSearch) -> str:
        turn = context.turn
        audience = audience_of(turn)
        if audience is None:
            raise ToolFailed(
                "Earlier conversations can't be searched here, because the platform does not say"
                " who the person is."
            )
        if arguments.around:
            found = await store.read(around, arguments.around, audience)
            return listed(found, MESSAGE) or f"There is no message #{arguments.around} here."
        if not arguments.query.strip():
            raise ToolFailed(
                "Give 'query' (words to look for), or the number of a message that was found."
            )
        limit = min(max(arguments.limit, 1), MOST_MESSAGES)
        found = await store.read(search, arguments.query, audience, turn=turn.id, limit=limit)
        return listed(found, SNIPPET) or "Nothing was found. Try other words."

    return Tool(
        name="session_search",
        description="Find what was said in earlier conversations with the person or in this chat.",
        arguments=SessionSearch,
        handler=find,
        # Earlier conversations may quote pages and files.
        untrusted=True,
        read_only=True,
        repeatable=True,
        uses_files=False,
        toolset="sessions",
    )


def listed(found: Sequence[FoundMessage], longest: int) -> str:
    """Returns a text with one line for each message. `longest` is the maximum length of the text of
    a message."""
    return "\n".join(line(one, longest) for one in found)


def line(found: FoundMessage, longest: int) -> str:
    """Formats a message: `#7 2026-05-03 14:02 UTC, telegram:private:42, user: …`"""
    when = datetime.fromtimestamp(found.at, UTC)
    conversation = found.session.split(":", 2)[-1]
    said = shorten(found.text, longest)
    return f"#{found.number} {when:%Y-%m-%d %H:%M} UTC, {conversation}, {found.role}: {said}"
