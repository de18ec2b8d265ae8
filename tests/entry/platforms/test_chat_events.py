"""The answer to a message goes to the chat and thread that the message came from."""

from hermes.entry.platforms.chat_events import chat_event, chat_source
from hermes.types.identity import Source, Target
from hermes.types.messages import Said

SOURCE = Source(
    platform="chat", account="chat.x", chat_kind="group", chat_id="1", user_id="7", thread_id="4"
)


def test_the_answer_goes_to_the_chat_and_thread_of_the_source() -> None:
    event = chat_event(SOURCE, "1:9", Said(text="hello"), 5.0, addressed=False, bot="our_bot")
    assert event.dedupe_key == "chat.x:1:9"
    assert event.origin.reply_to == Target(account="chat.x", chat_id="1", thread_id="4")
    assert (event.origin.bot, event.origin.principal) == ("our_bot", None)
    assert (event.source, event.received_at, event.addressed) == (SOURCE, 5.0, False)


def test_the_source_of_a_chat_has_no_user() -> None:
    source = chat_source("chat", "chat.x", "1", direct=False, chat_name="Team")
    assert (source.user_id, source.chat_name, source.chat_kind) == ("", "Team", "group")
    assert chat_source("chat", "chat.x", "1", "7", direct=True).chat_kind == "private"
