"""A chat is recorded when it is new, when its name changes, and again after a while."""

from msgspec.structs import replace

from hermes.control.sightings import MOST_SIGHTINGS, SIGHTING_SECONDS, ChatSightings
from hermes.testing.rows import NOW, SOURCE
from hermes.types.identity import Target
from hermes.types.messages import MessageEvent, Origin, Said

EVENT = MessageEvent(
    dedupe_key="1",
    source=SOURCE,
    origin=Origin(reply_to=Target(account=SOURCE.account, chat_id=SOURCE.chat_id)),
    received_at=NOW,
    body=Said(text="hi"),
)


def test_a_chat_is_recorded_once_in_a_while() -> None:
    seen = ChatSightings()
    assert seen.is_due(EVENT, NOW)
    seen.note(EVENT, NOW)
    assert not seen.is_due(EVENT, NOW + SIGHTING_SECONDS)
    assert seen.is_due(EVENT, NOW + SIGHTING_SECONDS + 1)
    assert seen.is_due(replace(EVENT, source=replace(SOURCE, chat_name="New")), NOW)
    seen.forget(SOURCE.account, SOURCE.chat_id)
    assert seen.is_due(EVENT, NOW)


def test_a_request_from_no_chat_is_not_recorded() -> None:
    assert not ChatSightings().is_due(replace(EVENT, origin=Origin()), NOW)


def test_the_number_of_remembered_chats_is_limited() -> None:
    seen = ChatSightings()
    for number in range(MOST_SIGHTINGS + 1):
        seen.note(replace(EVENT, source=replace(SOURCE, chat_id=str(number))), NOW)
    assert seen.is_due(replace(EVENT, source=replace(SOURCE, chat_id="0")), NOW)
    assert not seen.is_due(replace(EVENT, source=replace(SOURCE, chat_id="1")), NOW)
