"""Connects a bot to Telegram: receives updates by polling or webhook, and sends messages."""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from zlib import crc32

import anyio
import msgspec

from hermes.entry.platforms.http import read_attachment
from hermes.entry.platforms.telegram import updates
from hermes.entry.platforms.telegram.api import BotApi, ChatMoved, T, Upload
from hermes.entry.platforms.telegram.format import TEXT_LIMIT, TelegramHtml, measure
from hermes.entry.platforms.telegram.manifest import TelegramConfig, token_of, webhook_url
from hermes.entry.platforms.telegram.schema import UPDATES, Button, Keyboard, Message, Update, User
from hermes.types.commands import SlashCommand
from hermes.types.errors import AuthFailed, HermesError, Rejected, TargetGone
from hermes.types.identity import Target
from hermes.types.messages import Attachment, Content, MessageRef, Refused
from hermes.types.platforms import Cursor, PlatformLimits
from hermes.types.protocols import Accept

log = logging.getLogger(__name__)

POLL_SECONDS = 50
"""Maximum number of seconds for which Telegram waits for an update before it answers a poll."""
PHOTO_BYTES, UPLOAD_BYTES = 10 * 1024 * 1024, 50 * 1024 * 1024
"""Maximum size in bytes of a photo (first number) and of any other file (second number) that a bot
can send."""
MENU_COMMANDS = 100
"""Maximum number of commands in the menu of a bot."""
LONGEST_ALERT = 200
"""Maximum number of characters of the text that a person sees after pressing a button."""
SHORTEST_DESCRIPTION, LONGEST_DESCRIPTION = 3, 256
"""Limits for the description of a command in the menu, in characters."""
_MENU_NAME = re.compile("[a-z0-9_]{1,32}")
"""The form that the name of a command in the menu must have."""


class TelegramAdapter:
    limits = PlatformLimits(text=TEXT_LIMIT, buttons=8, attachments=True)
    render, measure = staticmethod(TelegramHtml().document), staticmethod(measure)

    def __init__(self, account: str, config: TelegramConfig) -> None:
        self.account = account
        self._api = BotApi(config.base_url.rstrip("/"), token_of(account, config))
        self._webhook_url = webhook_url(account, config)
        self._secret = config.webhook_secret
        self._reactions = config.reactions
        self._us: updates.Recipient | None = None
        self._drafts = True
        self._moved: dict[str, str] = {}
        """The new ids of groups that have become supergroups, by their old ids."""

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        async with self._api.open():
            await self._recipient()
            if self._webhook_url:
                place = {"url": self._webhook_url, "secret_token": self._secret}
                while True:
                    await self._api.call("setWebhook", bool, {**place, "allowed_updates": UPDATES})
                    ready()
                    await anyio.sleep(POLL_SECONDS)  # then set again, in case it was removed
            # Telegram refuses polls while a webhook is set.
            await self._api.call("deleteWebhook", bool, {})
            offset = int(cursor.value or 0)
            while True:
                ready()
                found = await self._poll(offset)
                for update in found:
                    await self.receive(update, accept)
                if found:
                    # The newest update does not always have the highest number. After a week
                    # without updates, Telegram may continue with smaller numbers.
                    offset = found[-1].update_id + 1
                    await cursor.save(str(offset))

    async def verify(self) -> str:
        return f"@{(await self._recipient()).user.username}"

    async def receive(self, update: Update, accept: Accept) -> None:
        """Reports a message or a button press to the gateway."""
        event = updates.to_event(await self._recipient(), update, time.time())
        receipt = None if event is None else await accept(event)
        if query := update.callback_query:
            answer: dict[str, object] = {"callback_query_id": query.id}
            if isinstance(receipt, Refused):
                text = f"Not accepted: {receipt.reason}."
                answer |= {"text": text[:LONGEST_ALERT], "show_alert": True}
            try:
                await self._api.call("answerCallbackQuery", bool, answer)
            except HermesError as error:
                # Telegram refuses late answers. This does no harm: the button only shows its
                # spinner for longer.
                log.info("a button press of %s was not answered: %s", self.account, error)

    async def _recipient(self) -> updates.Recipient:
        if self._us is None:
            me = await self._api.call("getMe", User, {})
            self._us = updates.Recipient(account=self.account, user=me)
        return self._us

    async def _poll(self, offset: int) -> list[Update]:
        wanted = {"offset": offset, "timeout": POLL_SECONDS, "allowed_updates": UPDATES}
        raw = await self._api.call("getUpdates", list[dict[str, object]], wanted, wait=POLL_SECONDS)
        return [self._read(one) for one in raw]

    def _read(self, raw: dict[str, object]) -> Update:
        """Parses an update. If the update is invalid, logs an error and returns an empty update, so
        that the updates after it are still read."""
        try:
            return msgspec.convert(raw, Update)
        except msgspec.ValidationError as error:
            number = raw["update_id"]
            log.error("update %s of %s can't be read: %s", number, self.account, error)
            return msgspec.convert({"update_id": number}, Update)

    async def show_commands(self, commands: Sequence[SlashCommand]) -> None:
        menu = [
            {"command": one.name, "description": one.help[:LONGEST_DESCRIPTION]}
            for one in commands
            if _MENU_NAME.fullmatch(one.name) and len(one.help) >= SHORTEST_DESCRIPTION
        ]
        await self._api.call("setMyCommands", bool, {"commands": menu[:MENU_COMMANDS]})

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        if content.attachments:
            sent = await self._send_file(target, content, content.attachments[0])
        else:
            body = {**_topic(target), **_text(content), "reply_markup": _keyboard(content)}
            sent = await self._call("sendMessage", Message, target, body)
        return MessageRef(id=str(sent.message_id))

    async def edit(self, target: Target, ref: MessageRef, content: Content) -> None:
        text = {"message_id": ref.id, **_text(content), "reply_markup": _keyboard(content)}
        try:
            await self._call("editMessageText", Message, target, text)
        except Rejected as error:
            # The message has this text already: an earlier edit worked, but its answer was lost.
            if "message is not modified" not in str(error):
                raise

    async def draft(self, target: Target, content: Content, key: str) -> bool:
        # Groups, which have negative ids, have no drafts.
        if not self._drafts or target.chat_id.startswith("-"):
            return False
        text = {"draft_id": crc32(key.encode()) or 1, "text": content.text, "parse_mode": "HTML"}
        try:
            await self._call("sendMessageDraft", bool, target, {**_topic(target), **text})
        except TargetGone:
            raise
        except (Rejected, AuthFailed) as error:
            # A server without the method `sendMessageDraft` answers with 404, which is reported as
            # AuthFailed.
            log.info("%s shows previews as messages, not as drafts: %s", self.account, error)
            self._drafts = False
        return self._drafts

    async def typing(self, target: Target) -> None:
        await self._call("sendChatAction", bool, target, {**_topic(target), "action": "typing"})

    async def react(self, target: Target, message_id: str) -> None:
        if self._reactions:
            eyes = {"message_id": message_id, "reaction": [{"type": "emoji", "emoji": "👀"}]}
            await self._call("setMessageReaction", bool, target, eyes)

    async def fetch(self, attachment: Attachment) -> bytes:
        return await self._api.download(attachment.path)

    async def _send_file(self, target: Target, content: Content, file: Attachment) -> Message:
        data = await read_attachment(file, UPLOAD_BYTES, "Telegram")
        method, field = _method(file, len(data))
        upload = Upload(field=field, file=file, data=data)
        caption = {"caption": content.text, "parse_mode": "HTML"} if content.text else {}
        return await self._call(method, Message, target, {**_topic(target), **caption}, upload)

    async def _call(
        self,
        method: str,
        returns: type[T],
        target: Target,
        parameters: Mapping[str, object],
        upload: Upload | None = None,
    ) -> T:
        """Calls a method for a chat, or for the supergroup that the chat has become."""
        chat = self._moved.get(target.chat_id, target.chat_id)
        try:
            return await self._api.call(method, returns, {"chat_id": chat, **parameters}, upload)
        except ChatMoved as moved:
            self._moved[target.chat_id] = chat = moved.chat_id
            return await self._api.call(method, returns, {"chat_id": chat, **parameters}, upload)


def _topic(target: Target) -> dict[str, object]:
    # The General topic has the number 1, which Telegram refuses. It is used without a number.
    return {"message_thread_id": target.thread_id} if target.thread_id not in (None, "1") else {}


def _text(content: Content) -> dict[str, object]:
    preview, mode = {"is_disabled": True}, None if content.plain else "HTML"
    return {"text": content.text, "parse_mode": mode, "link_preview_options": preview}


def _keyboard(content: Content) -> Keyboard | None:
    # A button can have 64 bytes of data, so the data has the label's number, not the label.
    rows = [
        (Button(text=label, callback_data=f"{choices.question}:{number}"),)
        for choices in content.choices
        for number, label in enumerate(choices.labels)
    ]
    return Keyboard(inline_keyboard=tuple(rows)) if rows else None


def _method(file: Attachment, size: int) -> tuple[str, str]:
    """Returns the method that sends a file, and the name of the file's parameter."""
    match file.kind:
        case "image" if size <= PHOTO_BYTES and file.media_type != "image/gif":
            return "sendPhoto", "photo"
        case "audio" if file.media_type in ("audio/ogg", "audio/opus"):
            return "sendVoice", "voice"
        case "audio" if file.media_type in ("audio/mpeg", "audio/mp4"):
            return "sendAudio", "audio"
        case "video" if file.media_type == "video/mp4":
            return "sendVideo", "video"
        case _:
            return "sendDocument", "document"
