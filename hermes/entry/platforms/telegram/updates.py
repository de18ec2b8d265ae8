"""Turns updates of the Bot API into events. It does no I/O."""

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
    """The account that receives an update, and the bot's user on Telegram."""

    account: str
    user: User


def to_event(us: Recipient, update: Update, now: float) -> MessageEvent | None:
    """Returns the event of an update. Each part of an album is an event of its own.

    Returns None for updates that are not for the agent: our own messages, and service messages such
    as a new member.
    """
    if update.callback_query is not None:
        return _press(us, update.callback_query, now)
    if (message := update.edited_message) is not None:
        key = f"{message.message_id}:edited:{message.edit_date}"
        body = Edited(message_id=str(message.message_id), text=message.text or message.caption)
        return _event(us, key, message, body, now)
    message = update.message
    said = _said(message) if message is not None else None
    if message is None or said is None:
        return None
    # The key does not contain the number of the update, because Telegram may use a number again
    # after a week without updates.
    event = _event(us, str(message.message_id), message, said, now)
    album = message.media_group_id or ""
    return event and replace(event, album=album, cut_with=_cut_with(message.text))


def _cut_with(text: str) -> str | None:
    """If `text` may be a part that the sender's client has cut from a longer text, returns the
    white space that the client has removed at the end of the part. Otherwise returns None."""
    units = utf16_units(text)
    if units < CUT_UNITS:
        return None
    return "" if units == TEXT_LIMIT else "\n"


def target_of(account: str, message: Message) -> Target:
    """Returns the chat of a message, with the forum topic if the message is in one."""
    # Outside of forums, `message_thread_id` is the id of a message that was replied to, and not the
    # number of a topic.
    topic = message.message_thread_id if message.is_topic_message else None
    thread = None if topic is None else str(topic)
    return Target(account=account, chat_id=str(message.chat.id), thread_id=thread)


def _event(
    us: Recipient, key: str, message: Message, body: Body, now: float
) -> MessageEvent | None:
    author = message.sender_chat or message.sender
    if author is None or author.id == us.user.id:
        return None
    return MessageEvent(
        dedupe_key=f"{us.account}:{message.chat.id}:{key}",
        source=_source(us, message, author),
        origin=Origin(reply_to=target_of(us.account, message), bot=us.user.username),
        received_at=now,
        body=body,
        addressed=message.chat.type == "private" or _addresses(us.user, message),
    )


def _press(us: Recipient, query: CallbackQuery, now: float) -> MessageEvent | None:
    """Returns the event of a button press; None if the button or its message is not known."""
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
    """Returns the source of a message. An anonymous administrator has the id of the group as user
    id."""
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


def _said(message: Message) -> Said | None:
    """Returns the text and the file of a message; None if it has neither."""
    texts = [text for text in (message.text or message.caption,) if text]
    texts += [message.sticker.emoji] if message.sticker else []
    file = _file(message)
    if file is not None and file.size > DOWNLOAD_BYTES:
        texts.append(f"{file.label[:-1]} was not received: it is larger than 20 MB]")
        file = None
    if not texts and file is None:
        return None
    answered = message.reply_to_message
    return Said(
        text="\n\n".join(texts),
        attachments=() if file is None else (file,),
        message_id=str(message.message_id),
        reply_to=str(answered.message_id) if answered else None,
    )


def _file(message: Message) -> Attachment | None:
    if message.photo:
        return _attachment("image", message.photo[-1], "photo.jpg", "image/jpeg")
    if message.voice:
        return _attachment("audio", message.voice, "voice.ogg", "audio/ogg")
    if message.audio:
        return _attachment("audio", message.audio, "audio.mp3", "audio/mpeg")
    if found := message.video or message.animation or message.video_note:
        return _attachment("video", found, "video.mp4", "video/mp4")
    if message.document is None:
        return None
    image = message.document.mime_type in ("image/png", "image/jpeg", "image/webp")
    kind: AttachmentKind = "image" if image else "file"
    return _attachment(kind, message.document, "file", "application/octet-stream")


def _attachment(kind: AttachmentKind, file: RemoteFile, name: str, media_type: str) -> Attachment:
    """Returns the attachment. Its path is the id of the file until the file is downloaded."""
    return Attachment(
        kind=kind,
        path=file.file_id,
        media_type=file.mime_type or media_type,
        name=file.file_name or name,
        size=file.file_size,
    )
