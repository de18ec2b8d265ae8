"""The objects of the Bot API are read from its JSON, and unknown fields are ignored."""

import msgspec

from hermes.entry.platforms.telegram.schema import Chat, Response, Update, User


def test_an_update_is_read() -> None:
    text = """{"update_id": 5, "message": {
        "message_id": 9, "date": 1700000000, "from": {"id": 7, "is_bot": false,
        "first_name": "Ann", "last_name": "Lee", "language_code": "en", "is_premium": true},
        "chat": {"id": -100, "type": "supergroup", "title": "Team", "is_forum": true},
        "message_thread_id": 4, "is_topic_message": true, "text": "hi", "new_field": [1]}}"""
    message = msgspec.json.decode(text, type=Update).message
    assert message is not None
    assert message.sender == User(id=7, first_name="Ann", last_name="Lee")
    assert message.sender.name == "Ann Lee"
    assert message.chat == Chat(id=-100, type="supergroup", name="Team")
    assert (message.message_thread_id, message.is_topic_message, message.text) == (4, True, "hi")


def test_an_update_of_an_unknown_kind_has_only_its_number() -> None:
    text = '{"update_id": 6, "poll": {"id": "1"}}'
    assert msgspec.json.decode(text, type=Update) == Update(update_id=6)


def test_a_refusal_is_read() -> None:
    text = """{"ok": false, "error_code": 429, "description": "Too Many Requests: retry after 5",
        "parameters": {"retry_after": 5}}"""
    response = msgspec.json.decode(text, type=Response)
    assert (response.ok, response.parameters) == (False, {"retry_after": 5})
