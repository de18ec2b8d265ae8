"""Joins the parts of a message: the pictures of an album, and the pieces of a long text."""

from collections import OrderedDict

from msgspec.structs import replace

from hermes.state import message_parts
from hermes.types.messages import Attachment, MessageEvent, Said
from hermes.types.store import Work

PART_SECONDS = 1.0
"""Seconds for which a message waits for its next part. If a part arrives after the message's turn
was opened, the part becomes a separate message."""


MOST_ALBUMS = 256
"""Maximum number of albums that are remembered."""


class AddressedAlbums:
    """The newest albums that are addressed to the agent. In a group, only the part with the caption
    mentions the agent, so the other parts of the album count as addressed, too."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, str, str], None] = OrderedDict()

    def note(self, event: MessageEvent) -> None:
        """Remembers that the message's album is addressed to the agent. Does nothing if the message
        belongs to no album."""
        if event.album:
            self._known[_album_key(event)] = None
            if len(self._known) > MOST_ALBUMS:
                self._known.popitem(last=False)

    def __contains__(self, event: MessageEvent) -> bool:
        return bool(event.album) and _album_key(event) in self._known


def _album_key(event: MessageEvent) -> tuple[str, str, str, str]:
    source = event.source
    return source.account, source.chat_id, source.user_id, event.album


def whole_message(id: str) -> Work[MessageEvent | None]:
    """Returns the message of the inbox row `id` together with its further parts; None if it can't
    be read."""
    parts = yield from message_parts.parts_of(id)
    match [event for _, event in parts]:
        case []:
            return None
        case [only]:
            return only
        case several:
            return joined(several)


def joined(parts: list[MessageEvent]) -> MessageEvent:
    """Returns the first event with the texts and the attachments of all parts."""
    text = ""
    files: list[Attachment] = []
    between = ""
    for part in parts:
        assert isinstance(part.body, Said), "only chat messages have parts"
        if text and part.body.text:
            text += between
        start = len(text)
        text += part.body.text
        files += [replace(file, at=start + file.at) for file in part.body.attachments]
        between = "\n\n" if part.cut_with is None else part.cut_with
    first = parts[0].body
    assert isinstance(first, Said), "only chat messages have parts"
    return replace(parts[0], body=replace(first, text=text, attachments=tuple(files)))
