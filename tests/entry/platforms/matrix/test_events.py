"""Events of Matrix rooms become events of the gateway. Malformed and hostile events are ignored."""

import msgspec
import pytest

from hermes.entry.platforms.matrix.events import Room, related_event, to_event
from hermes.entry.platforms.matrix.schema import RoomEvent
from hermes.types.identity import Source, Target
from hermes.types.messages import Attachment, MessageEvent, Said

US, ANN = "@hermes:x.org", "@ann:x.org"
NOW = 1_700_000_000.0
SOURCE = Source(platform="matrix", account="matrix", chat_kind="private", chat_id="!r", user_id="")
DIRECT = Room(us=US, source=SOURCE, names={ANN: "Ann", US: ""}, encrypted=False)
GROUP = msgspec.structs.replace(
    DIRECT, source=msgspec.structs.replace(SOURCE, chat_kind="group", chat_name="Team")
)


def event(sender: str = ANN, kind: str = "m.room.message", /, **content: object) -> RoomEvent:
    raw = msgspec.json.encode(content)
    fields = {"type": kind, "sender": sender, "event_id": "$e", "content": msgspec.Raw(raw)}
    return msgspec.convert(fields, RoomEvent)


def heard(one: RoomEvent, room: Room = DIRECT) -> MessageEvent:
    found = to_event(room, one, None, NOW)
    assert found is not None
    return found


def said(**content: object) -> Said:
    body = heard(event(**content)).body
    assert isinstance(body, Said)
    return body


def test_a_direct_message_becomes_an_event() -> None:
    found = heard(event(msgtype="m.text", body="hello"))
    assert found.dedupe_key == "matrix:$e"
    assert found.source == msgspec.structs.replace(SOURCE, user_id=ANN, user_name="Ann")
    assert found.origin.reply_to == Target(account="matrix", chat_id="!r")
    assert found.origin.principal is None
    assert found.received_at == NOW
    assert found.body == Said(text="hello", message_id="$e")
    assert found.addressed


@pytest.mark.parametrize(
    "ignored",
    [
        event(US, msgtype="m.text", body="ours"),
        event(msgtype="m.notice", body="from a bot"),
        event(msgtype="m.text", body="  "),
        event(msgtype="m.key.verification.request", body="verify"),
        event(),
        event(msgtype="m.text", body=["not", "a", "text"]),
        event(msgtype="m.image", body="x.png", url="mxc://../../v3/logout"),
        event(msgtype="m.image", body="x.png", file={"url": "mxc://x.org/a"}),
        event(ANN, "m.room.encrypted", ciphertext="x"),
        event(ANN, "m.reaction", body="x", msgtype="m.text"),
    ],
)
def test_some_events_are_not_for_the_agent(ignored: RoomEvent) -> None:
    assert to_event(DIRECT, ignored, None, NOW) is None


@pytest.mark.parametrize(
    ("content", "addressed"),
    [
        ({"body": "hello everybody"}, False),
        ({"body": "hermes, hello"}, True),
        ({"body": "hello @hermes:x.org"}, True),
        ({"body": "hello hermeses"}, False),
        ({"body": "/stop"}, True),
        ({"body": "!poll"}, False),
        ({"body": "you", "m.mentions": {"user_ids": [US]}}, True),
        ({"body": "you", "m.mentions": {"room": True}}, False),
    ],
)
def test_a_group_message_is_addressed_by_mention_or_command(
    content: dict[str, object], addressed: bool
) -> None:
    assert heard(event(msgtype="m.text", **content), GROUP).addressed is addressed


def test_a_reply_to_us_is_addressed_to_us() -> None:
    reply = event(
        msgtype="m.text", body="yes", **{"m.relates_to": {"m.in_reply_to": {"event_id": "$o"}}}
    )
    assert related_event(reply) == "$o"
    for sender, addressed in ((US, True), (ANN, False)):
        answered = event(sender, msgtype="m.text", body="Tea?")
        found = to_event(GROUP, reply, answered, NOW)
        assert found is not None
        assert found.addressed is addressed
        assert isinstance(found.body, Said)
        assert found.body.reply_to == "$o"


def test_a_thread_is_not_a_reply() -> None:
    relation = {
        "rel_type": "m.thread",
        "event_id": "$root",
        "is_falling_back": True,
        "m.in_reply_to": {"event_id": "$last"},
    }
    threaded = event(msgtype="m.text", body="a", **{"m.relates_to": relation})
    assert related_event(threaded) is None
    assert heard(threaded).source.thread_id == "$root"


def test_an_exclamation_mark_stands_for_the_slash_of_a_command() -> None:
    assert said(msgtype="m.text", body="!model gpt").text == "/model gpt"
    assert said(msgtype="m.text", body="!! really").text == "!! really"


def test_an_emote_is_marked() -> None:
    assert said(msgtype="m.emote", body="waves").text == "* waves"


def test_a_file_may_have_a_caption() -> None:
    url, info = "mxc://x.org:8448/AbC-_1", {"mimetype": "audio/ogg", "size": 5}
    body = said(msgtype="m.audio", body="listen", filename="a.ogg", url=url, info=info)
    assert body.text == "listen"
    expected = Attachment(kind="audio", path=url, media_type="audio/ogg", name="a.ogg", size=5)
    assert body.attachments == (expected,)
    plain = said(msgtype="m.file", body="a.bin", url=url)
    assert (plain.text, plain.attachments[0].name) == ("", "a.bin")
    assert said(msgtype="m.file", body="a.bin", filename="a.bin", url=url).text == ""
