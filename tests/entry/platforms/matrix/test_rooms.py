"""The members and the name of a room are read once, and again only after they have changed."""

from hermes.entry.platforms.matrix.api import MatrixApi
from hermes.entry.platforms.matrix.rooms import RoomCache
from hermes.entry.platforms.matrix.schema import RoomEvent, Timeline
from hermes.testing.matrix import matrix_platform, new_user


async def test_a_room_is_read_again_after_its_members_changed() -> None:
    async with matrix_platform() as platform:
        api = MatrixApi(platform.credentials, "device")
        rooms = RoomCache(api, "matrix", platform.bot.id)
        room = await rooms.get(platform.room)
        assert room.source.chat_kind == "private"
        assert set(room.names) == {platform.person.id, platform.bot.id}
        other = new_user(platform.server, "bob")
        platform.person.call("POST", "rooms", platform.room, "invite", body={"user_id": other.id})
        other.join(platform.room)
        message = RoomEvent(type="m.room.message", sender=other.id)
        rooms.notice(platform.room, Timeline(events=(message,)))
        assert await rooms.get(platform.room) is room
        joined = RoomEvent(type="m.room.member", sender=other.id, state_key=other.id)
        rooms.notice(platform.room, Timeline(events=(joined,)))
        assert (await rooms.get(platform.room)).source.chat_kind == "group"
        platform.person.set_state(platform.room, "m.room.name", {"name": "Team"})
        rooms.notice(platform.room, Timeline(limited=True))
        assert (await rooms.get(platform.room)).source.chat_name == "Team"
