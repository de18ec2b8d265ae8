"""The objects of the Bot API that the adapter reads, with the field names of the API."""

from typing import Literal

import msgspec

from hermes.types.value import Value


class User(Value):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""

    @property
    def name(self) -> str:
        return f"{self.first_name} {self.last_name}".strip()


class Chat(Value):
    id: int
    type: Literal["private", "group", "supergroup", "channel"]
    name: str = msgspec.field(default="", name="title")


class Entity(Value):
    """A part of a text that has a meaning, such as a mention. Positions are in UTF-16 units."""

    type: str
    offset: int
    length: int
    user: User | None = None
    """The mentioned user, if the type is `text_mention`."""


class RemoteFile(Value):
    """A file on Telegram's servers."""

    file_id: str
    file_size: int = 0
    """Size in bytes; 0 if unknown."""
    file_name: str = ""
    mime_type: str = ""
    file_path: str = ""
    """The path of the download. Only the result of `getFile` has it."""


class Sticker(Value):
    emoji: str = ""


class Button(Value):
    text: str
    callback_data: str = ""


class Keyboard(Value):
    inline_keyboard: tuple[tuple[Button, ...], ...] = ()


class Message(Value):
    """A message in a chat. A message that the bot can't read any more has only an id and a chat."""

    message_id: int
    chat: Chat
    edit_date: int = 0
    sender: User | None = msgspec.field(default=None, name="from")
    sender_chat: Chat | None = None
    """The group or channel in whose name the message was sent."""
    message_thread_id: int | None = None
    is_topic_message: bool = False
    media_group_id: str | None = None
    """Identifies the album that the message belongs to."""
    reply_to_message: "Message | None" = None
    text: str = ""
    entities: tuple[Entity, ...] = ()
    caption: str = ""
    caption_entities: tuple[Entity, ...] = ()
    photo: tuple[RemoteFile, ...] = ()
    """The same photo in several sizes, smallest first."""
    animation: RemoteFile | None = None
    document: RemoteFile | None = None
    audio: RemoteFile | None = None
    voice: RemoteFile | None = None
    video: RemoteFile | None = None
    video_note: RemoteFile | None = None
    sticker: Sticker | None = None
    reply_markup: Keyboard | None = None


class CallbackQuery(Value):
    """A press of a button."""

    id: str
    sender: User = msgspec.field(name="from")
    message: Message | None = None
    data: str = ""


class Update(Value):
    """Something that happened in a chat of the bot. At most one of the optional fields is set."""

    update_id: int
    message: Message | None = None
    edited_message: Message | None = None
    callback_query: CallbackQuery | None = None


UPDATES = ("message", "edited_message", "callback_query")
"""The kinds of updates that the adapter requests."""

DOWNLOAD_BYTES = 20 * 1024 * 1024
"""Maximum size in bytes of a file that the Bot API lets a bot download."""


class Response(Value):
    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    description: str = ""
    parameters: dict[str, int] = msgspec.field(default_factory=dict)
    """The details of an error: `retry_after` in seconds, or `migrate_to_chat_id`."""
