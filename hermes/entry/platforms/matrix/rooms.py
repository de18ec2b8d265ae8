"""Reads the rooms of an account: their members, their names, and whether they are encrypted."""

from hermes.entry.platforms.chat_events import chat_source
from hermes.entry.platforms.matrix.api import MatrixApi, api_path
from hermes.entry.platforms.matrix.events import Room
from hermes.entry.platforms.matrix.schema import EventContent, RoomEvent, Timeline

FACTS = ("m.room.member", "m.room.name", "m.room.encryption")


class RoomCache:
    """Reads the state of a room when it is first needed, and again after it changed."""

    def __init__(self, api: MatrixApi, account: str, us: str) -> None:
        self._api, self._account, self.us = api, account, us
        self._rooms: dict[str, Room] = {}
        self._direct_rooms = api_path("user", us, "account_data", "m.direct")

    def notice(self, room_id: str, news: Timeline) -> None:
        """Looks for changes of the room's state among new events of the room. Must be called before
        `get`."""
        if news.limited or any(event.type in FACTS for event in news.events):
            self._rooms.pop(room_id, None)

    async def get(self, room_id: str) -> Room:
        if room_id not in self._rooms:
            path = api_path("rooms", room_id, "state")
            events = await self._api.call("GET", path, list[RoomEvent])
            state = {(one.type, one.state_key): one.content for one in events}
            members = [(id, m) for (kind, id), m in state.items() if kind == "m.room.member"]
            names = {id or "": m.displayname or "" for id, m in members if m.membership == "join"}
            marked = await self._api.find(self._direct_rooms, dict[str, list[str]]) or {}
            direct = len(names) <= 2 or any(room_id in rooms for rooms in marked.values())
            name = state.get(("m.room.name", ""), EventContent()).name or None
            source = chat_source("matrix", self._account, room_id, direct=direct, chat_name=name)
            secret = ("m.room.encryption", "") in state
            self._rooms[room_id] = Room(us=self.us, source=source, names=names, encrypted=secret)
        return self._rooms[room_id]
