"""Joins the parts of a message: the pictures of an album, and the pieces of a long text."""

from msgspec.structs import replace

from hermes.state import message_parts
from hermes.types.messages import Attachment, MessageEvent, Said
from hermes.types.store import Work

PART_SECONDS = 1.0
"""Seconds for which a message waits for its next part. A part that arrives after the turn of the
message was opened becomes a message of its own."""


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
