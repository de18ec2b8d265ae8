"""Reads the rooms of an account: their members, their names, and whether they are encrypted."""

from msgspec.structs import replace

from hermes.entry.platforms.matrix.api import MatrixApi, api_path
from hermes.entry.platforms.matrix.events import Room
from hermes.entry.platforms.matrix.schema import EventContent, RoomEvent, Timeline
from hermes.types.identity import ChatKind, Source

FACTS = ("m.room.member", "m.room.name", "m.room.encryption")


class RoomCache:
    """Reads the state of a room when it is first needed, and again after it changed."""

    def __init__(self, api: MatrixApi, account: str, us: str) -> None:
        self._api, self._account, self.us = api, account, us
        self._rooms: dict[str, Room] = {}

    def notice(self, room_id: str, news: Timeline) -> None:
        """Finds changes in the news of a room. Must be called before `get`."""
        if news.limited or any(event.type in FACTS for event in news.events):
            self._rooms.pop(room_id, None)

    def source(self, room_id: str, user_id: str) -> Source:
        return Source(
            platform="matrix",
            account=self._account,
            chat_kind="group",
            chat_id=room_id,
            user_id=user_id,
        )

    async def get(self, room_id: str) -> Room:
        if room_id not in self._rooms:
            path = api_path("rooms", room_id, "state")
            events = await self._api.call("GET", path, list[RoomEvent])
            state = {(one.type, one.state_key): one.content for one in events}
            members = {user: one for (kind, user), one in state.items() if kind == "m.room.member"}
            joined = {user: one for user, one in members.items() if one.membership == "join"}
            names = {user or "": one.displayname or "" for user, one in joined.items()}
            direct = len(names) <= 2 or room_id in await self._direct_rooms()
            name = state.get(("m.room.name", ""), EventContent()).name or None
            kind: ChatKind = "private" if direct else "group"
            source = replace(self.source(room_id, ""), chat_kind=kind, chat_name=name)
            secret = ("m.room.encryption", "") in state
            self._rooms[room_id] = Room(us=self.us, source=source, names=names, encrypted=secret)
        return self._rooms[room_id]

    async def _direct_rooms(self) -> set[str]:
        """Returns the rooms that the account has marked as conversations with one person."""
        path = api_path("user", self.us, "account_data", "m.direct")
        rooms = await self._api.find(path, dict[str, list[str]]) or {}
        return {room for found in rooms.values() for room in found}
