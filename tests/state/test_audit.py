"""The rows of a message are found by its id, its dedupe key or its turn."""

from pathlib import Path

from hermes.state import audit, inbox, turns
from hermes.state.turns import TurnRow
from hermes.testing.platforms import Update, to_event
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.types.identity import AgentId, OwnerId, PersonId, SessionKey, TurnId

KEY = SessionKey(agent=AgentId("main"), platform="plain", kind="private", chat="1")
OWNER = OwnerId("o")


async def test_a_message_that_waits_and_a_command_have_no_turn(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        assert await store.read(audit.trail, "m1") is None
        for id, state in (("m1", "pending"), ("m2", "done")):
            event = to_event(Update(id=int(id[1]), chat="1", user="7", text="hi"), "plain")
            await store.run(inbox.insert, id, event, KEY, PersonId("plain:7"), OWNER, state)
        for name, id, state in (("m1", "m1", "pending"), ("plain:2", "m2", "done")):
            found = await store.read(audit.trail, name)
            assert found
            (message,) = found.messages
            assert (message.id, message.state, message.person) == (id, state, "plain:7")
            assert message.session == "agent:main:plain:private:1"
            assert found.turn is None


async def test_a_turn_is_found_after_its_message_was_deleted_and_with_a_damaged_row(
    tmp_path: Path,
) -> None:
    row = TurnRow(
        id=TurnId("t1"),
        session=str(KEY),
        person=PersonId("plain:7"),
        account="plain",
        state="completed",
        owner=OWNER,
        epoch=1,
        trigger="message",
        transient=False,
        generation=0,
        steps=1,
        seq=0,
        shown=0,
        stop_requested=None,
        reason=None,
        code=None,
        started_at=1.0,
    )
    async with open_test_store(tmp_path) as store:
        await store.run(turns.insert, row, "main", "1")
        await rows(
            store,
            "insert into messages (session, generation, turn, step, idx, role, body, text,"
            " transient, agent, account, chat_id, at)"
            " values (?, 0, 't1', 0, 0, 'assistant', ?, '', 0, 'main', 'plain', '1', 2.0)",
            str(KEY),
            b"{damaged",
        )
        found = await store.read(audit.trail, "t1")
    assert found
    assert found.turn
    assert (found.messages, found.turn.person, found.deliveries) == ((), "plain:7", ())
    (call,) = found.model_calls
    assert (call.step, call.at, call.text) == (0, 2.0, "(This message can't be read.)")
