"""Connects an account to Matrix: receives the events of its rooms, and sends messages."""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import takewhile

import msgspec
from aiohttp import BytesPayload

from hermes.entry.platforms import http
from hermes.entry.platforms.chat_events import chat_event, chat_source
from hermes.entry.platforms.matrix import events
from hermes.entry.platforms.matrix.api import MatrixApi, api_path
from hermes.entry.platforms.matrix.format import TEXT_LIMIT, render
from hermes.entry.platforms.matrix.manifest import MatrixAccount
from hermes.entry.platforms.matrix.rooms import FACTS, RoomCache
from hermes.entry.platforms.matrix.schema import MXC, Page, RoomEvent, RoomNews, Sync, Timeline
from hermes.text.split import utf8_bytes
from hermes.types.errors import Disconnected, HermesError, Rejected
from hermes.types.identity import Target, new_id
from hermes.types.messages import Attachment, Content, Invited, MessageRef, Refused
from hermes.types.platforms import Cursor, PlatformLimits
from hermes.types.protocols import Accept

log = logging.getLogger(__name__)

SYNC_SECONDS, PAGE = 30, 20
"""Number of seconds that a sync waits for an event (first number), and maximum number of events of
one room in the reply (second number)."""
UPLOAD, DOWNLOAD = "_matrix/media/v3/upload", "_matrix/client/v1/media/download"
ENCRYPTED = "I can't read this room, because it is encrypted. Please invite me to one that is not."

_NOTHING = {"types": ()}
_EVENTS = {"types": ("m.room.message", "m.room.encrypted", *FACTS), "limit": PAGE}
_ROOMS = {"timeline": _EVENTS, "state": _NOTHING, "ephemeral": _NOTHING, "account_data": _NOTHING}
_ALL = {"presence": _NOTHING, "account_data": _NOTHING, "room": _ROOMS}
_WANTED, _FILTER = (msgspec.json.encode(one).decode() for one in (_EVENTS, _ALL))


class MatrixAdapter:
    limits = PlatformLimits(text=TEXT_LIMIT, attachments=True, deduplicates=True)
    render, measure = staticmethod(render), staticmethod(utf8_bytes)

    def __init__(self, account: str, credentials: MatrixAccount) -> None:
        self.account = account
        self._api = MatrixApi(credentials, device_id=f"hermes-{account}")
        self.verify = self._api.verify

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        async with self._api.http.open():
            self.user_id = (await self._api.login()).user_id
            rooms = RoomCache(self._api, self.account, self.user_id)
            since, timeout = cursor.value, 0
            while True:
                query = {"filter": _FILTER, "since": since, "timeout": str(1000 * timeout)}
                batch = await self._api.call("GET", api_path("sync"), Sync, None, query, timeout)
                ready()
                for room_id, news in batch.rooms.get("invite", {}).items():
                    await self._join(rooms, room_id, news, accept)
                for room_id, news in batch.rooms.get("join", {}).items():
                    rooms.notice(room_id, news.timeline)
                    # Messages from before the first connection are not answered.
                    if since is not None:
                        found = await self._missed(rooms.us, room_id, news.timeline, since)
                        await self._receive(rooms, room_id, found, accept)
                since, timeout = batch.next_batch, SYNC_SECONDS
                await cursor.save(since)

    async def _join(self, rooms: RoomCache, room_id: str, news: RoomNews, accept: Accept) -> None:
        found = [one for one in news.invite_state.events if one.lets_in(rooms.us)]
        sender, direct = (found[0].sender, found[0].content.is_direct) if found else ("", False)
        source = chat_source("matrix", self.account, room_id, sender, direct=direct)
        key = f"{room_id}:invited:{sender}"
        if isinstance(await accept(chat_event(source, key, Invited(), time.time())), Refused):
            return
        try:
            await self._api.call("POST", api_path("rooms", room_id, "join"), object, {})
        except (Rejected, Disconnected) as error:
            # A homeserver may never let the bot join this room. So the failure is only logged, and
            # the other rooms do not wait.
            log.warning("%s can't join %s, invite it again: %s", self.account, room_id, error)

    async def _missed(self, us: str, room_id: str, news: Timeline, since: str) -> list[RoomEvent]:
        """Returns the events that are newer than the sync token `since`, oldest first. Events from
        before our account was invited to the room, or joined it, are left out."""
        newest_first = list(reversed(news.events))
        token = news.prev_batch if news.limited else None
        query = {"dir": "b", "to": since, "limit": str(PAGE), "filter": _WANTED}
        while token and not any(event.lets_in(us) for event in newest_first):
            path = api_path("rooms", room_id, "messages")
            page = await self._api.call("GET", path, Page, None, {**query, "from": token})
            newest_first += page.chunk
            token = page.end
        return list(takewhile(lambda event: not event.lets_in(us), newest_first))[::-1]

    async def _receive(
        self, rooms: RoomCache, room_id: str, news: Iterable[RoomEvent], accept: Accept
    ) -> None:
        """Reports the messages of a room, and marks the last accepted message as read."""
        read = None
        for event in news:
            if event.sender == rooms.us or event.state_key is not None:
                continue
            room = await rooms.get(room_id)
            if room.encrypted:
                return await self._explain_encryption(rooms.us, room_id)
            related = None
            if id := events.related_event(event):
                related = await self._api.find(api_path("rooms", room_id, "event", id), RoomEvent)
            said = events.to_event(room, event, related, time.time())
            if said is not None and not isinstance(await accept(said), Refused):
                read = event.event_id
        try:
            if read is not None:
                path = api_path("rooms", room_id, "receipt", "m.read", read)
                await self._api.call("POST", path, object, {})
        except HermesError as error:
            log.info("%s can't mark a message as read: %s", self.account, error)

    async def _explain_encryption(self, us: str, room_id: str) -> None:
        """Says once in the log and once in the room that an encrypted room can't be read."""
        path = api_path("user", us, "rooms", room_id, "account_data", "org.hermes.explained")
        if await self._api.find(path, object) is None:
            log.warning("%s can't read %s, because the room is encrypted", self.account, room_id)
            with suppress(Rejected):
                await self._put(room_id, {"msgtype": "m.notice", "body": ENCRYPTED}, "encrypted")
            await self._api.call("PUT", path, object, {"explained": True})

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        message: dict[str, object] = {"msgtype": "m.text"}
        if content.attachments:
            message = await self._uploaded(content.attachments[0])
        message |= _fields(content)
        if thread := target.thread_id:
            reply = {"is_falling_back": True, "m.in_reply_to": {"event_id": thread}}
            message["m.relates_to"] = {"rel_type": "m.thread", "event_id": thread, **reply}
        return MessageRef(id=await self._put(target.chat_id, message, key))

    async def edit(self, target: Target, ref: MessageRef, content: Content) -> None:
        fields = _fields(content)
        edited = {
            "msgtype": "m.text",
            "body": f"* {fields['body'][:100]}",
            "m.new_content": {"msgtype": "m.text", **fields},
            "m.relates_to": {"rel_type": "m.replace", "event_id": ref.id},
        }
        # Each edit gets a new key. If the key were made from the text, the homeserver would ignore
        # an edit that restores an earlier text.
        await self._put(target.chat_id, edited, new_id())

    async def typing(self, target: Target) -> None:
        path = api_path("rooms", target.chat_id, "typing", (await self._api.login()).user_id)
        await self._api.call("PUT", path, object, {"typing": True, "timeout": 6000})

    async def fetch(self, attachment: Attachment) -> bytes:
        if (place := MXC.fullmatch(attachment.path)) is None:
            raise Rejected(f"{attachment.path!r} is not a file on a homeserver")
        path, seconds = f"{DOWNLOAD}/{place[1]}", http.FILE_SECONDS
        return await self._api.send(http.PlatformRequest(method="GET", path=path, seconds=seconds))

    async def _put(self, room_id: str, message: Mapping[str, object], key: str) -> str:
        """Sends a message. If a message with this key was sent before, nothing is sent again.
        Returns the id of the message's event."""
        path = api_path("rooms", room_id, "send", "m.room.message", key)
        message = {**message, "m.mentions": {}}
        return (await self._api.call("PUT", path, dict[str, str], message))["event_id"]

    async def _uploaded(self, file: Attachment) -> dict[str, object]:
        """Uploads a file. Returns the fields of its message."""
        data = await http.read_attachment(file, 100 * 1024 * 1024, "Matrix")
        name, kind = file.file_name, file.media_type
        body, query = BytesPayload(data, content_type=kind), {"filename": name}
        call, wait = self._api.call, http.FILE_SECONDS
        answer = await call("POST", UPLOAD, dict[str, str], body, query, wait)
        file_fields = {"url": answer["content_uri"], "info": {"mimetype": kind, "size": len(data)}}
        return {"msgtype": f"m.{file.kind}", "body": name, "filename": name, **file_fields}


def _fields(content: Content) -> dict[str, str]:
    """Returns the fields of a message that shows the text; empty if there is no text."""
    if len(content.text.encode()) > TEXT_LIMIT:
        raise Rejected(f"the text has more than {TEXT_LIMIT} bytes")
    if content.plain:
        return {"body": content.text}
    return msgspec.json.decode(content.text, type=dict[str, str]) if content.text else {}
