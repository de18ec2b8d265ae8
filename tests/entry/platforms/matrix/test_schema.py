"""Objects of the Matrix API are decoded. Malformed content from other users causes no error."""

import msgspec
import pytest

from hermes.entry.platforms.matrix.schema import MXC, EventContent, RoomEvent, Sync

US = "@hermes:x.org"


def member(before: str, now: str, user: str = US) -> RoomEvent:
    unsigned = {"prev_content": {"membership": before}} if before else {}
    fields = {"type": "m.room.member", "sender": "@ann:x.org", "state_key": user}
    event = {**fields, "content": {"membership": now}, "unsigned": {"age": 1, **unsigned}}
    return msgspec.json.decode(msgspec.json.encode(event), type=RoomEvent)


@pytest.mark.parametrize(
    ("event", "lets_in"),
    [
        (member("", "invite"), True),
        (member("leave", "invite"), True),
        (member("", "join"), True),
        (member("leave", "join"), True),
        (member("invite", "join"), False),
        (member("join", "join"), False),
        (member("join", "leave"), False),
        (member("", "invite", "@bob:x.org"), False),
    ],
)
def test_an_invitation_or_a_join_without_an_invitation_lets_a_user_in(
    event: RoomEvent, lets_in: bool
) -> None:
    assert event.lets_in(US) is lets_in


def test_malformed_content_counts_as_empty() -> None:
    raw = b'{"next_batch": "s1", "rooms": {"join": {"!r": {"timeline": {"events": [%s]}}}}}'
    event = b'{"type": "m.room.message", "sender": "@a:x", "content": {"body": 5, "msgtype": []}}'
    sync = msgspec.json.decode(raw % event, type=Sync)
    (found,) = sync.rooms["join"]["!r"].timeline.events
    assert found.content == EventContent()


@pytest.mark.parametrize(
    ("uri", "valid"),
    [
        ("mxc://x.org/AbC-_1", True),
        ("mxc://[::1]:8448/a", True),
        ("mxc://../a", False),
        ("mxc://x.org/../a", False),
        ("mxc://x.org/a?b", False),
        ("https://x.org/a", False),
    ],
)
def test_the_address_of_a_file_names_no_other_endpoint(uri: str, valid: bool) -> None:
    assert bool(MXC.fullmatch(uri)) is valid
