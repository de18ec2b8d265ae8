"""Connects a bot to Telegram: receives updates by polling or webhook, and sends messages."""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import PurePath

import aiohttp
import anyio
import msgspec

from hermes.entry.platforms.http import FILE_SECONDS, read_attachment
from hermes.entry.platforms.telegram import updates
from hermes.entry.platforms.telegram.api import BotApi
from hermes.entry.platforms.telegram.format import TEXT_LIMIT, TelegramHtml, measure
from hermes.entry.platforms.telegram.manifest import TelegramConfig, token_of, webhook_url
from hermes.entry.platforms.telegram.schema import UPDATES, Button, Keyboard, Message, Update, User
from hermes.types.errors import HermesError, Rejected
from hermes.types.identity import Target
from hermes.types.messages import Attachment, Content, MessageRef
from hermes.types.platforms import Cursor, PlatformLimits
from hermes.types.protocols import Accept

log = logging.getLogger(__name__)

POLL_SECONDS = 50
"""Longest time that Telegram waits for an update before it answers a poll."""
MOST_UPDATES = 100
"""Largest number of updates that one poll returns."""
ALBUM_SECONDS = 1.0
"""Time without a new piece after which an album counts as complete."""
PHOTO_BYTES, UPLOAD_BYTES = 10 * 1024 * 1024, 50 * 1024 * 1024
"""Largest photo and largest file that a bot can send."""


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

    # --- receiving ---------------------------------------------------------------------------

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        async with self._api.open():
            await self._recipient()
            if self._webhook_url:
                place = {"url": self._webhook_url, "secret_token": self._secret}
                await self._api.call("setWebhook", bool, {**place, "allowed_updates": UPDATES})
                ready()
                await anyio.sleep_forever()
            # Telegram refuses polls while a webhook is set.
            await self._api.call("deleteWebhook", bool, {})
            ready()
            offset = int(cursor.value or 0)
            while True:
                found = await self._updates(offset)
                for pieces in updates.grouped(found):
                    await self.receive(pieces, accept)
                if found:
                    # The numbers may also become smaller, after a week without updates.
                    offset = found[-1].update_id + 1
                    await cursor.save(str(offset))

    async def receive(self, pieces: Sequence[Update], accept: Accept) -> None:
        """Reports one message, album or button press."""
        event = updates.to_event(await self._recipient(), pieces, time.time())
        if event is not None:
            await accept(event)
        if query := pieces[0].callback_query:
            try:
                await self._api.call("answerCallbackQuery", bool, {"callback_query_id": query.id})
            except HermesError as error:
                # The button only shows a spinner for longer. An old press can't be answered.
                log.info("a button press of %s was not answered: %s", self.account, error)

    async def _recipient(self) -> updates.Recipient:
        if self._us is None:
            me = await self._api.call("getMe", User, {})
            self._us = updates.Recipient(account=self.account, user=me)
        return self._us

    async def _updates(self, offset: int) -> list[Update]:
        """Waits for updates. If some belong to an album, it also waits for the rest of it."""
        found = await self._poll(offset, POLL_SECONDS)
        while pieces := sum(updates.album_of(one) is not None for one in found):
            if len(found) == MOST_UPDATES:
                return updates.without_last_album(found)
            await anyio.sleep(ALBUM_SECONDS)
            # Nothing is acknowledged yet, so that the server returns the same updates again.
            found = await self._poll(offset, 0)
            if sum(updates.album_of(one) is not None for one in found) == pieces:
                break
        return found

    async def _poll(self, offset: int, seconds: int) -> list[Update]:
        wanted = {"offset": offset, "timeout": seconds, "allowed_updates": UPDATES}
        raw = await self._api.call("getUpdates", list[dict[str, object]], wanted, wait=seconds)
        return [self._read(one) for one in raw]

    def _read(self, raw: dict[str, object]) -> Update:
        """Returns an update. An update that can't be read must not block the ones after it."""
        try:
            return msgspec.convert(raw, Update)
        except msgspec.ValidationError as error:
            number = raw["update_id"]
            log.error("update %s of %s can't be read: %s", number, self.account, error)
            return msgspec.convert({"update_id": number}, Update)

    # --- sending -----------------------------------------------------------------------------

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        if content.attachments:
            sent = await self._send_file(target, content, content.attachments[0])
        else:
            body = {**_place(target), **_text(content), "reply_markup": _keyboard(content)}
            sent = await self._api.call("sendMessage", Message, body)
        return MessageRef(id=str(sent.message_id))

    async def edit(self, target: Target, ref: MessageRef, content: Content) -> None:
        place = {"chat_id": target.chat_id, "message_id": ref.id}
        body = {**place, **_text(content), "reply_markup": _keyboard(content)}
        try:
            await self._api.call("editMessageText", Message, body)
        except Rejected as error:
            # The message shows the text already, for example after an attempt without an answer.
            if "message is not modified" not in str(error):
                raise

    async def typing(self, target: Target) -> None:
        await self._api.call("sendChatAction", bool, {**_place(target), "action": "typing"})

    async def react(self, target: Target, message_id: str) -> None:
        if self._reactions:
            place = {"chat_id": target.chat_id, "message_id": message_id}
            eyes = {"type": "emoji", "emoji": "👀"}
            await self._api.call("setMessageReaction", bool, {**place, "reaction": [eyes]})

    async def fetch(self, attachment: Attachment) -> bytes:
        return await self._api.download(attachment.path)

    async def _send_file(self, target: Target, content: Content, file: Attachment) -> Message:
        data = await read_attachment(file, UPLOAD_BYTES, "Telegram")
        method, field = _method(file, len(data))
        form = aiohttp.FormData()
        for name, value in _place(target).items():
            if value is not None:
                form.add_field(name, value)
        if content.text:
            form.add_field("caption", content.text)
            form.add_field("parse_mode", "HTML")
        name = file.name or PurePath(file.path).name
        form.add_field(field, data, filename=name, content_type=file.media_type)
        return await self._api.call(method, Message, form, wait=FILE_SECONDS)


def _place(target: Target) -> dict[str, str | None]:
    return {"chat_id": target.chat_id, "message_thread_id": target.thread_id}


def _text(content: Content) -> dict[str, object]:
    preview = {"is_disabled": True}
    return {"text": content.text, "parse_mode": "HTML", "link_preview_options": preview}


def _keyboard(content: Content) -> Keyboard | None:
    # Telegram allows 64 bytes of data, so the data has the label's number instead of the label.
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
