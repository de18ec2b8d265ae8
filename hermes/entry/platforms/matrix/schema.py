"""The objects of the client-server API that the adapter reads, with the field names of the API."""

import re
from collections.abc import Mapping

import msgspec

from hermes.entry.platforms.http import decoded_or
from hermes.types.value import Value

MXC = re.compile(r"mxc://([\w\[][\w.:\[\]-]*/[\w-]+)", re.ASCII)
"""The address of a file. The sender chooses the address, so the pattern excludes text that would
name another API endpoint."""


class Login(Value):
    user_id: str
    access_token: str = ""


class Problem(Value):
    errcode: str = ""
    error: str = ""
    retry_after_ms: float | None = None


class Relation(Value):
    rel_type: str = ""
    event_id: str = ""
    is_falling_back: bool = False
    """Whether `in_reply_to` is only for clients that do not know threads."""
    in_reply_to: "Relation | None" = msgspec.field(default=None, name="m.in_reply_to")

    def target(self, rel_type: str) -> str | None:
        return self.event_id if self.event_id and self.rel_type == rel_type else None

    @property
    def answered(self) -> str | None:
        """The id of the event that this message replies to; None if the message is no reply."""
        return self.in_reply_to.event_id if self.in_reply_to and not self.is_falling_back else None


class Mentions(Value):
    user_ids: tuple[str, ...] = ()


class FileInfo(Value):
    mimetype: str = "application/octet-stream"
    size: int = 0


class EventContent(Value):
    name: str = ""
    membership: str = ""
    is_direct: bool = False
    displayname: str | None = None
    msgtype: str = ""
    body: str = ""
    filename: str = ""
    """The name of the file. If it is empty, `body` is the name and there is no caption."""
    url: str = ""
    info: FileInfo = FileInfo()
    relation: Relation = msgspec.field(default=Relation(), name="m.relates_to")
    new_content: "EventContent | None" = msgspec.field(default=None, name="m.new_content")
    mentions: Mentions = msgspec.field(default=Mentions(), name="m.mentions")


class RoomEvent(Value):
    type: str
    sender: str
    event_id: str = ""
    state_key: str | None = None
    raw: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="content")
    unsigned: Mapping[str, msgspec.Raw] = {}

    @property
    def content(self) -> EventContent:
        return decoded_or(EventContent(), self.raw)

    def lets_in(self, user_id: str) -> bool:
        """Whether the event admits the user to the room: the event is an invitation, or says that
        the user has joined without an invitation."""
        if self.type != "m.room.member" or self.state_key != user_id:
            return False
        old, now = self.unsigned.get("prev_content", msgspec.Raw()), self.content.membership
        before = decoded_or(EventContent(), old).membership
        return now == "invite" or (now == "join" and before not in ("invite", "join"))


class Timeline(Value):
    events: tuple[RoomEvent, ...] = ()
    limited: bool = False
    prev_batch: str = ""


class RoomNews(Value):
    timeline: Timeline = Timeline()
    invite_state: Timeline = Timeline()


class Sync(Value):
    next_batch: str
    rooms: Mapping[str, Mapping[str, RoomNews]] = {}
    """Maps each membership of the account (`join` or `invite`) to the news of the rooms, by the id
    of the room."""


class Page(Value):
    chunk: tuple[RoomEvent, ...] = ()
    end: str | None = None
