"""Each message is stored as a row of the inbox. If a command turns out to be a message for the
agent, its row becomes the row of this message."""

from pathlib import Path

from msgspec.structs import replace

from hermes.control.incoming import Incoming, store_row, tell
from hermes.state import inbox, turns
from hermes.testing.rows import CHAT, NOW, US, said, session
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.types.commands import CommandReply
from hermes.types.identity import PersonId, TurnId
from hermes.types.messages import Accepted, Duplicate, Said

ANN = PersonId("ann")


async def test_a_message_is_stored_once_and_a_command_s_row_can_hold_its_message(
    tmp_path: Path,
) -> None:
    command = Incoming(event=said("k"), key=session(), person=ANN)
    async with open_test_store(tmp_path) as store:
        id = await store.run(store_row, command, US, "done")
        assert isinstance(id, str)
        assert isinstance(await store.run(store_row, command, US), Duplicate)
        event = replace(said("k"), body=Said(text="later", message_id="5"))
        message = replace(command, event=event, key=session("8"), row=id)
        assert await store.run(store_row, message, US) == id
        assert await store.run(inbox.event_of, id) == event
        found = await rows(store, "select session, state, turn, message_id from inbox")
    assert found == [(str(session("8")), "pending", None, "5")]


async def test_a_reply_is_sent_to_the_chat_and_stored_for_a_request_that_may_be_repeated(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        event, done = said("k", fingerprint="f"), CommandReply(reply="Noted.", failed=True)
        told = await store.run(tell, "m", event, session(), done, NOW)
        page = await store.run(turns.events_page, TurnId("m"), 0)
        owed = await rows(store, "select account, chat_id, state from deliveries")
    assert told.receipt == Accepted(id="m", reply="Noted.", failed=True)
    assert told.owed == CHAT
    assert len(page.recorded) == 2
    assert owed == [(CHAT.account, CHAT.chat_id, "ready")]
