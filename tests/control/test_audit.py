"""The audit trail of a message shows each step from the person's message to the deliveries."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.audit import AuditTrail, UnknownMessage, find_trail
from hermes.core.tools.send_message import send_message
from hermes.entry.cli.audit import lines_of
from hermes.testing.platforms import ChatServer, PlainAdapter, fake_targets
from hermes.testing.running import QUIET, running, until
from hermes.testing.scripted import ScriptedModel, calls, says


async def trail_of_an_evening(home: Path) -> AuditTrail:
    """Runs a turn in which the model calls two tools, one of which asks a person."""
    server = ChatServer()
    model = ScriptedModel([calls(("append", {"token": "a"})), calls(("ask", {})), says("Done.")])
    async with running(home, [PlainAdapter(server)], model) as gateway:
        server.says("go", chat="7", name="Ann")
        await until(lambda: any("Which one?" in text for text in server.texts("7")))
        server.says("the red one", chat="7", name="Ann")
        await until(lambda: server.texts("7")[-1] == "Done.")
        await until(lambda: not gateway.busy)
        await gateway._outbox.idle()
        found = await gateway.read(find_trail, "plain:1")
        assert found.turn
        assert await gateway.read(find_trail, found.turn.id) == found
        assert await gateway.read(find_trail, found.messages[1].id) == found
        with pytest.raises(UnknownMessage, match="there is no message or turn 'x'"):
            await gateway.read(find_trail, "x")
    return found


async def test_a_message_is_traced_from_the_person_to_the_deliveries(tmp_path: Path) -> None:
    found = await trail_of_an_evening(tmp_path)
    asked, answer = found.messages
    assert (asked.person, asked.agent, asked.user_id) == ("plain:7", "main", "7")
    assert asked.session == "agent:main:plain:private:7"
    assert asked.received_at <= answer.received_at
    assert found.turn
    assert (found.turn.state, found.turn.steps) == ("completed", 2)
    first, second, last = found.model_calls
    (append,), (ask,) = first.calls, second.calls
    assert (append.name, append.failed, append.decisions) == ("append", False, ())
    assert append.started_at
    (decision,) = ask.decisions
    assert (decision.kind, decision.state, decision.answer) == (
        "question",
        "answered",
        "the red one",
    )
    assert decision.decided_by == "plain:7"
    assert decision.decided_at
    assert (last.text, last.calls) == ("Done.", ())
    assert [one.state for one in found.deliveries] == ["delivered", "delivered"]
    assert [one.receipts for one in found.deliveries] == [("m1",), ("m2",)]
    assert all(one.finished_at and one.attempts == 1 for one in found.deliveries)


async def test_the_trail_is_shown_as_lines(tmp_path: Path) -> None:
    found = await trail_of_an_evening(tmp_path)
    lines = list(lines_of(found))
    kinds = [line.split()[0] for line in lines]
    message = ["message", "received", "person", "sent"]
    assert kinds == [
        *message,
        *message,
        *("agent", "session", "turn", "model", "tool", "model", "tool", "decision", "model"),
        *("delivery", "delivery"),
    ]
    assert "person    plain:7" in lines
    assert "session   agent:main:plain:private:7" in lines
    assert any("“Which one?”: answered by plain:7 at 20" in line for line in lines)
    assert lines[-1].endswith(", 1 attempt, messages m2")


async def test_the_deliveries_include_the_messages_that_a_tool_has_sent(tmp_path: Path) -> None:
    server = ChatServer()
    sending = {"to": "origin", "text": "A message of the tool."}
    model = ScriptedModel([calls(("send_message", sending)), says("Sent."), says("Nothing else.")])
    conditions = replace(QUIET, tools=(send_message,), targets=fake_targets("plain"))
    async with running(tmp_path, [PlainAdapter(server)], model, conditions) as gateway:
        asked = server.says("Send it.", chat="7")
        await until(lambda: "Sent." in server.texts("7"))
        next_one = server.says("And now?", chat="7")
        await until(lambda: "Nothing else." in server.texts("7"))
        await until(lambda: not gateway.busy)
        await gateway._outbox.idle()
        first = await gateway.read(find_trail, f"plain:{asked}")
        second = await gateway.read(find_trail, f"plain:{next_one}")
    assert server.texts("7") == ["A message of the tool.", "Sent.", "Nothing else."]
    assert sorted(id for one in first.deliveries for id in one.receipts) == ["m1", "m2"]
    assert [one.receipts for one in second.deliveries] == [("m3",)]
    assert any(" completed in " in line and ": 2 steps, " in line for line in lines_of(first))
