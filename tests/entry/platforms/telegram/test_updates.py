"""Updates become events with the facts that the gateway needs. If an update is delivered again, its
event has the same key as before."""

import msgspec
import pytest

from hermes.entry.platforms.telegram.schema import Update, User
from hermes.entry.platforms.telegram.updates import Recipient, to_event
from hermes.types.identity import Source, Target
from hermes.types.messages import Attachment, Edited, MessageEvent, Pressed, Said

US = Recipient(account="telegram", user=User(id=100, is_bot=True, username="our_bot"))
ANN = {"id": 7, "is_bot": False, "first_name": "Ann"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Ann"}
GROUP = {"id": -1001, "type": "supergroup", "title": "Team"}
NOW = 1_700_000_000.0


def update(number: object = 1, **fields: object) -> Update:
    return msgspec.convert({"update_id": number, **fields}, Update)


def message(id: object = 9, chat: object = PRIVATE, **fields: object) -> dict[str, object]:
    return {"message_id": id, "date": 1_600_000_000, "chat": chat, "from": ANN, **fields}


def event_of(received: Update) -> MessageEvent:
    event = to_event(US, received, NOW)
    assert event is not None
    return event


def said(**fields: object) -> Said:
    body = event_of(update(message=message(**fields))).body
    assert isinstance(body, Said)
    return body


def test_a_private_message_becomes_an_event() -> None:
    event = event_of(update(message=message(text="hello")))
    assert event.source == Source(
        platform="telegram",
        account="telegram",
        chat_kind="private",
        chat_id="7",
        user_id="7",
        user_name="Ann",
    )
    assert event.origin.reply_to == Target(account="telegram", chat_id="7")
    assert event.origin.bot == "our_bot"
    assert event.origin.principal is None
    assert event.received_at == NOW
    assert event.body == Said(text="hello", message_id="9")
    assert event.addressed


def test_the_key_names_the_account_the_chat_and_the_message_but_not_the_update() -> None:
    first, again = (event_of(update(n, message=message(text="hello"))) for n in (1, 500))
    other = event_of(update(message=message(id=10, text="hello")))
    elsewhere = event_of(update(message=message(chat=GROUP, text="hello")))
    assert first.dedupe_key == again.dedupe_key == "telegram:7:9"
    assert len({first.dedupe_key, other.dedupe_key, elsewhere.dedupe_key}) == 3


def test_a_forum_topic_is_a_thread_but_a_reply_in_a_group_is_not() -> None:
    topic = message(chat=GROUP, text="a", message_thread_id=4, is_topic_message=True)
    event = event_of(update(message=topic))
    assert event.source.thread_id == "4"
    assert event.origin.reply_to == Target(account="telegram", chat_id="-1001", thread_id="4")
    reply = event_of(update(message=message(chat=GROUP, text="a", message_thread_id=4)))
    assert reply.source.thread_id is None
    assert reply.source.chat_name == "Team"


def test_an_anonymous_administrator_has_the_id_and_the_name_of_the_group() -> None:
    bot = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    sent = {**message(chat=GROUP, text="a"), "from": bot, "sender_chat": GROUP}
    source = event_of(update(message=sent)).source
    assert (source.user_id, source.user_name) == ("-1001", "Team")


@pytest.mark.parametrize(
    "ignored",
    [
        {"message": {**message(text="a"), "from": {"id": 100, "is_bot": True}}},
        {"message": message(chat=GROUP, new_chat_members=[ANN])},
        {"my_chat_member": {"chat": PRIVATE}},
        {"callback_query": {"id": "q", "from": ANN, "data": "q1:0"}},
        {"callback_query": {"id": "q", "from": ANN, "data": "q1:0", "message": message()}},
    ],
    ids=["ours", "service", "unknown", "press-without-message", "press-unreadable"],
)
def test_some_updates_are_not_for_the_agent(ignored: dict[str, object]) -> None:
    assert to_event(US, update(**ignored), NOW) is None


def test_the_message_of_another_bot_is_marked() -> None:
    bot = {"id": 200, "is_bot": True, "first_name": "Other"}
    assert event_of(update(message={**message(text="a"), "from": bot})).source.is_bot
    assert not event_of(update(message=message(text="a"))).source.is_bot


def test_an_edited_message_becomes_an_event() -> None:
    edited = message(text="new", edit_date=1_600_000_005)
    event = event_of(update(edited_message=edited))
    assert event.body == Edited(message_id="9", text="new")
    assert event.dedupe_key == "telegram:7:9:edited:1600000005"


def test_a_pressed_button_becomes_an_event() -> None:
    row = [{"text": "Yes", "callback_data": "q:1:0"}, {"text": "No", "callback_data": "q:1:1"}]
    shown = {**message(chat=GROUP, text="Tea?"), "reply_markup": {"inline_keyboard": [row]}}
    query = {"id": "77", "from": ANN, "data": "q:1:1", "message": shown}
    event = event_of(update(callback_query=query))
    assert event.body == Pressed(question="q:1", choice="No", message_id="9")
    assert event.dedupe_key == "telegram:press:77"
    assert event.source.user_id == "7"
    assert event.received_at == NOW
    assert event.addressed


@pytest.mark.parametrize(
    ("fields", "addressed"),
    [
        ({"text": "hello everybody"}, False),
        (
            {
                "text": "😀 @Our_Bot hi",
                "entities": [{"type": "mention", "offset": 3, "length": 8}],
            },
            True,
        ),
        (
            {"text": "@another hi", "entities": [{"type": "mention", "offset": 0, "length": 8}]},
            False,
        ),
        (
            {
                "text": "you there",
                "entities": [
                    {"type": "text_mention", "offset": 0, "length": 3, "user": {"id": 100}}
                ],
            },
            True,
        ),
        (
            {
                "photo": [{"file_id": "p"}],
                "caption": "@our_bot look",
                "caption_entities": [{"type": "mention", "offset": 0, "length": 8}],
            },
            True,
        ),
        (
            {
                "text": "yes",
                "reply_to_message": {
                    "message_id": 1,
                    "chat": GROUP,
                    "from": {"id": 100, "is_bot": True},
                },
            },
            True,
        ),
        (
            {"text": "yes", "reply_to_message": {"message_id": 1, "chat": GROUP, "from": ANN}},
            False,
        ),
        ({"text": "/stop@our_bot"}, True),
        ({"text": "/stop"}, True),
    ],
)
def test_a_group_message_is_addressed_by_mention_reply_or_command(
    fields: dict[str, object], addressed: bool
) -> None:
    event = event_of(update(message=message(chat=GROUP, **fields)))
    assert event.addressed is addressed
    assert event.source.chat_kind == "group"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"photo": [{"file_id": "small"}, {"file_id": "big", "file_size": 5}]},
            Attachment(kind="image", path="big", media_type="image/jpeg", name="photo.jpg", size=5),
        ),
        (
            {"voice": {"file_id": "v", "mime_type": "audio/ogg"}},
            Attachment(kind="audio", path="v", media_type="audio/ogg", name="voice.ogg"),
        ),
        (
            {"audio": {"file_id": "a", "file_name": "song.m4a", "mime_type": "audio/mp4"}},
            Attachment(kind="audio", path="a", media_type="audio/mp4", name="song.m4a"),
        ),
        (
            {"animation": {"file_id": "g"}, "document": {"file_id": "g"}},
            Attachment(kind="video", path="g", media_type="video/mp4", name="video.mp4"),
        ),
        (
            {"document": {"file_id": "d", "file_name": "a.pdf", "mime_type": "application/pdf"}},
            Attachment(kind="file", path="d", media_type="application/pdf", name="a.pdf"),
        ),
        (
            {"document": {"file_id": "d", "file_name": "a.png", "mime_type": "image/png"}},
            Attachment(kind="image", path="d", media_type="image/png", name="a.png"),
        ),
    ],
)
def test_files_are_attachments(fields: dict[str, object], expected: Attachment) -> None:
    body = said(**fields, caption="look")
    assert body.text == "look"
    assert body.attachments == (expected,)


def test_a_file_that_is_too_large_is_refused_with_a_note() -> None:
    large = {"file_id": "d", "file_name": "film.bin", "file_size": 20 * 1024 * 1024 + 1}
    body = said(document=large, caption="look")
    assert body.attachments == ()
    assert body.text == "look\n\n[file film.bin was not received: it is larger than 20 MB]"


def test_a_sticker_becomes_its_emoji() -> None:
    assert said(sticker={"file_id": "s", "emoji": "👍"}).text == "👍"


def test_a_part_of_an_album_names_the_album() -> None:
    part = message(photo=[{"file_id": "p"}], media_group_id="a", caption="my holiday")
    event = event_of(update(message=part))
    assert event.album == "a"
    assert isinstance(event.body, Said)
    assert event.body.text == "my holiday"
    assert [file.path for file in event.body.attachments] == ["p"]


@pytest.mark.parametrize(
    ("text", "between"),
    [("x" * 3999, None), ("x" * 4000, "\n"), ("x" * 4096, ""), ("😀" * 2048, "")],
)
def test_a_text_as_long_as_the_limit_may_continue_in_the_next_message(
    text: str, between: str | None
) -> None:
    assert event_of(update(message=message(text=text))).cut_with == between
