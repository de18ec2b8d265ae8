"""The parameters of each method that the fake Bot API of Telegram supports."""

from typing import Annotated, Literal

from msgspec import Meta

from hermes.types.value import Value

BATCH_LIMIT = 100


class _Strict(Value, forbid_unknown_fields=True):
    """The parameters of one method. A parameter with an unknown name is refused."""


class InlineButton(_Strict):
    text: str
    callback_data: str


class InlineKeyboard(_Strict):
    inline_keyboard: tuple[tuple[InlineButton, ...], ...]


class LinkPreview(_Strict):
    is_disabled: bool


class GetUpdates(_Strict):
    offset: int = 0
    limit: int = BATCH_LIMIT
    timeout: int = 0
    allowed_updates: tuple[str, ...] = ()


class SetWebhook(_Strict):
    url: str
    secret_token: str = ""
    allowed_updates: tuple[str, ...] = ()


class NoParameters(_Strict):
    pass


class SendMessage(_Strict):
    chat_id: int
    text: str
    message_thread_id: int | None = None
    parse_mode: Literal["HTML"] | None = None
    reply_markup: InlineKeyboard | None = None
    link_preview_options: LinkPreview | None = None


class EditMessageText(_Strict):
    chat_id: int
    message_id: int
    text: str
    parse_mode: Literal["HTML"] | None = None
    reply_markup: InlineKeyboard | None = None
    link_preview_options: LinkPreview | None = None


class SendMessageDraft(_Strict):
    chat_id: Annotated[int, Meta(gt=0)]
    draft_id: Annotated[int, Meta(ge=1)]
    text: str
    message_thread_id: int | None = None
    parse_mode: Literal["HTML"] | None = None


class MenuCommand(_Strict):
    command: Annotated[str, Meta(pattern=r"^[a-z0-9_]{1,32}$")]
    description: Annotated[str, Meta(min_length=3, max_length=256)]


class SetMyCommands(_Strict):
    commands: Annotated[tuple[MenuCommand, ...], Meta(max_length=100)]


class SendChatAction(_Strict):
    chat_id: int
    action: Literal["typing", "upload_photo", "upload_document", "record_voice"]
    message_thread_id: int | None = None


class EmojiReaction(_Strict):
    type: Literal["emoji"]
    emoji: Literal["👀", "👍", "👎", "❤", "🔥", "🎉", "🤔"]


class SetMessageReaction(_Strict):
    chat_id: int
    message_id: int
    reaction: tuple[EmojiReaction, ...]


class AnswerCallbackQuery(_Strict):
    callback_query_id: str
    text: Annotated[str, Meta(max_length=200)] = ""
    show_alert: bool = False


class GetFile(_Strict):
    file_id: str


class SendFile(_Strict):
    chat_id: int
    message_thread_id: int | None = None
    caption: str = ""
    parse_mode: Literal["HTML"] | None = None


FILE_FIELDS = {
    "sendPhoto": "photo",
    "sendDocument": "document",
    "sendVoice": "voice",
    "sendAudio": "audio",
    "sendVideo": "video",
}
"""Maps each method that sends a file to the name of the parameter that contains the file."""
