"""Turns updates of the Bot API into events. It does no I/O."""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from msgspec.structs import replace

from hermes.entry.platforms.telegram.format import TEXT_LIMIT
from hermes.entry.platforms.telegram.schema import (
    DOWNLOAD_BYTES,
    CallbackQuery,
    Chat,
    Message,
    RemoteFile,
    Update,
    User,
)
from hermes.text.commands import parse_command
from hermes.text.split import utf16_units
from hermes.types.identity import Source, Target
from hermes.types.messages import (
    Attachment,
    AttachmentKind,
    Body,
    Edited,
    MessageEvent,
    Origin,
    Pressed,
    Said,
)
from hermes.types.value import Value

CUT_UNITS = 4000
"""Clients cut a text at Telegram's limit of 4096 UTF-16 units, or a little earlier at the end of a
word. A text of at least this length may continue in the next message."""


class Recipient(Value):
    """Our account, and the bot's own user on Telegram."""

    account: str
    user: User


def to_event(us: Recipient, pieces: Sequence[Update], now: float) -> MessageEvent | None:
    """Returns the event of an update, or of all updates of an album. If an album arrives in single
    updates, as by webhook, the gateway joins their events.

    Returns None for updates that are not for the agent: our own messages, and service messages such
    as a new member.
    """
    first = pieces[0]
    if first.callback_query is not None:
        return _press(us, first.callback_query, now)
    if (message := first.edited_message) is not None:
        key = f"{message.message_id}:edited:{message.edit_date}"
        body = Edited(message_id=str(message.message_id), text=message.text or message.caption)
        return _event(us, key, [message], body, now)
    messages = [piece.message for piece in pieces if piece.message is not None]
    said = _said(messages) if messages else None
    # The key has no update number: after a week without updates, Telegram may repeat numbers.
    event = _event(us, str(messages[0].message_id), messages, said, now) if said else None
    if event is None or len(messages) > 1:
        return event
    album = messages[0].media_group_id or ""
    return replace(event, album=album, cut_with=_cut_with(messages[0].text))


def _cut_with(text: str) -> str | None:
    """Returns the text that the client has removed after a long text, if it has cut the text."""
    units = utf16_units(text)
    if units < CUT_UNITS:
        return None
    return "" if units == TEXT_LIMIT else "\n"


def grouped(updates: Iterable[Update]) -> list[list[Update]]:
    """Returns groups in the order of their first updates: a whole album, or one other update."""
    groups: dict[object, list[Update]] = {}
    for update in updates:
        groups.setdefault(album_of(update) or update.update_id, []).append(update)
    return list(groups.values())


def without_last_album(updates: list[Update]) -> list[Update]:
    """Removes the album at the end, which may be incomplete, unless nothing would be left."""
    last = album_of(updates[-1])
    kept = list(takewhile(lambda one: last is None or album_of(one) != last, updates))
    return kept or updates


def album_of(update: Update) -> tuple[int, str] | None:
    """Returns the chat and the id of the update's album; None if it belongs to no album."""
    message = update.message
    if message is None or message.media_group_id is None:
        return None
    return message.chat.id, message.media_group_id


def target_of(account: str, message: Message) -> Target:
    """Returns the chat of a message, with the forum topic if the message is in one."""
    # Outside of forums, `message_thread_id` is a message that was replied to, not a topic.
    topic = message.message_thread_id if message.is_topic_message else None
    thread = None if topic is None else str(topic)
    return Target(account=account, chat_id=str(message.chat.id), thread_id=thread)


def _event(
    us: Recipient, key: str, messages: Sequence[Message], body: Body, now: float
) -> MessageEvent | None:
    first = messages[0]
    author = first.sender_chat or first.sender
    if author is None or author.id == us.user.id:
        return None
    addressed = any(_addresses(us.user, message) for message in messages)
    return MessageEvent(
        dedupe_key=f"{us.account}:{first.chat.id}:{key}",
        source=_source(us, first, author),
        origin=Origin(reply_to=target_of(us.account, first), bot=us.user.username),
        received_at=now,
        body=body,
        addressed=first.chat.type == "private" or addressed,
    )


def _press(us: Recipient, query: CallbackQuery, now: float) -> MessageEvent | None:
    """Returns the event of a button press; None if its message or the button is not known."""
    message = query.message
    rows = message.reply_markup.inline_keyboard if message and message.reply_markup else ()
    labels = [button.text for row in rows for button in row if button.callback_data == query.data]
    if message is None or not labels:
        return None
    question = query.data.rpartition(":")[0]
    return MessageEvent(
        dedupe_key=f"{us.account}:press:{query.id}",
        source=_source(us, message, query.sender),
        origin=Origin(reply_to=target_of(us.account, message), bot=us.user.username),
        received_at=now,
        body=Pressed(question=question, choice=labels[0], message_id=str(message.message_id)),
    )


def _source(us: Recipient, message: Message, author: User | Chat) -> Source:
    """Returns the source. An anonymous administrator has the id of the group as user id."""
    return Source(
        platform="telegram",
        account=us.account,
        chat_kind="group" if message.chat.type == "supergroup" else message.chat.type,
        chat_id=str(message.chat.id),
        user_id=str(author.id),
        thread_id=target_of(us.account, message).thread_id,
        user_name=author.name or None,
        chat_name=message.chat.name or None,
        is_bot=isinstance(author, User) and author.is_bot,
    )


def _addresses(user: User, message: Message) -> bool:
    """Whether a group message is a command, a reply to the bot, or mentions the bot."""
    answered = message.reply_to_message
    if answered and answered.sender and answered.sender.id == user.id:
        return True
    text = message.text or message.caption
    if parse_command(text) is not None:
        return True
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in (*message.entities, *message.caption_entities):
        start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        part = units[start:end].decode("utf-16-le", "replace")
        if entity.type == "mention" and part.casefold() == f"@{user.username}".casefold():
            return True
        if entity.type == "text_mention" and entity.user and entity.user.id == user.id:
            return True
    return False


def _said(messages: Sequence[Message]) -> Said | None:
    """Returns the text and the files of a message or an album; None if it has neither."""
    texts = [text for message in messages if (text := message.text or message.caption)]
    texts += [message.sticker.emoji for message in messages if message.sticker]
    files: list[Attachment] = []
    for message in messages:
        for file in _files(message):
            if file.size > DOWNLOAD_BYTES:
                texts.append(f"{file.label[:-1]} was not received: it is larger than 20 MB]")
            else:
                files.append(file)
    if not texts and not files:
        return None
    answered = messages[0].reply_to_message
    return Said(
        text="\n\n".join(texts),
        attachments=tuple(files),
        message_id=str(messages[0].message_id),
        reply_to=str(answered.message_id) if answered else None,
    )


def _files(message: Message) -> Iterable[Attachment]:
    if message.photo:
        yield _attachment("image", message.photo[-1], "photo.jpg", "image/jpeg")
    elif message.voice:
        yield _attachment("audio", message.voice, "voice.ogg", "audio/ogg")
    elif message.audio:
        yield _attachment("audio", message.audio, "audio.mp3", "audio/mpeg")
    elif found := message.video or message.animation or message.video_note:
        yield _attachment("video", found, "video.mp4", "video/mp4")
    elif message.document:
        image = message.document.mime_type in ("image/png", "image/jpeg", "image/webp")
        kind: AttachmentKind = "image" if image else "file"
        yield _attachment(kind, message.document, "file", "application/octet-stream")


def _attachment(kind: AttachmentKind, file: RemoteFile, name: str, media_type: str) -> Attachment:
    """Returns the attachment. Its path is the id of the file until the file is downloaded."""
    return Attachment(
        kind=kind,
        path=file.file_id,
        media_type=file.mime_type or media_type,
        name=file.file_name or name,
        size=file.file_size,
    )
