"""Turns the events of a room into events of the gateway. It does no I/O."""

from msgspec.structs import replace

from hermes.entry.platforms.chat_events import chat_event
from hermes.entry.platforms.matrix.schema import MXC, EventContent, RoomEvent
from hermes.text.commands import as_slash_command, parse_command
from hermes.text.mentions import mentions
from hermes.types import messages
from hermes.types.identity import Source
from hermes.types.value import Value

_KINDS: tuple[messages.AttachmentKind, ...] = ("image", "audio", "video", "file")
_FILES = {f"m.{kind}": kind for kind in _KINDS}


class Room(Value):
    us: str
    """The user id of our account."""
    source: Source
    """The source of the room's messages, without a user."""
    names: dict[str, str]
    """The display names of the joined members, by user id."""
    encrypted: bool


def related_event(event: RoomEvent) -> str | None:
    """Returns the id of the message that this event edits or answers."""
    relation = event.content.relation
    return relation.target("m.replace") or relation.answered


def to_event(
    room: Room, event: RoomEvent, related: RoomEvent | None, now: float
) -> messages.MessageEvent | None:
    """Converts a message or an edit from the homeserver. Returns None if `event` is not for the
    agent. `related` is the message that `event` edits or answers; None without such a message."""
    if event.sender == room.us or event.type != "m.room.message" or event.state_key is not None:
        return None
    content = original = event.content
    body: messages.Body | None = _said(event.event_id, content)
    if edited := content.relation.target("m.replace"):
        # Homeservers also deliver edits by people who did not write the message. Clients must
        # ignore these edits.
        if related is None or related.sender != event.sender or content.new_content is None:
            return None
        original = related.content
        body = messages.Edited(message_id=edited, text=_text(content.new_content))
    if body is None:
        return None
    thread, name = original.relation.target("m.thread"), room.names.get(event.sender)
    source = replace(room.source, user_id=event.sender, thread_id=thread, user_name=name or None)
    addressed = source.chat_kind == "private" or _addresses(room, content, related)
    return chat_event(source, event.event_id, body, now, addressed=addressed)


def _said(event_id: str, content: EventContent) -> messages.Said | None:
    text, files = _text(content), tuple[messages.Attachment, ...]()
    if (kind := _FILES.get(content.msgtype)) and MXC.fullmatch(content.url):
        info, name = content.info, content.filename or content.body
        file = messages.Attachment(
            kind=kind, path=content.url, media_type=info.mimetype, name=name or None, size=info.size
        )
        text, files = "" if content.body == name else text, (file,)
    # Other types, such as the notices of bots, must not be answered.
    elif content.msgtype not in ("m.text", "m.emote") or not text.strip():
        return None
    answered = content.relation.answered
    return messages.Said(text=text, attachments=files, message_id=event_id, reply_to=answered)


def _addresses(room: Room, content: EventContent, related: RoomEvent | None) -> bool:
    """Whether a message in a group is a slash command, a reply to us, or mentions us."""
    name = room.names.get(room.us) or room.us.partition(":")[0].removeprefix("@")
    return (
        room.us in content.mentions.user_ids
        or (related is not None and related.sender == room.us)
        or parse_command(content.body) is not None
        or mentions(content.body, (room.us, name))
    )


def _text(content: EventContent) -> str:
    # Matrix clients keep `/` for their own commands, so people can write `!` instead.
    text = as_slash_command(content.body, "!")
    return f"* {text}" if content.msgtype == "m.emote" else text
