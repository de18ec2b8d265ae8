"""If a message arrives while a turn runs, the message waits. If the turn has asked a person a
question, the next message of this person is the answer."""

from collections.abc import Mapping
from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from hermes.testing.platforms import ChatServer, PlainAdapter, RichAdapter, Update, to_event
from hermes.testing.running import QUIET, held, refused, rows, running, until
from hermes.testing.scripted import Answer, ScriptedModel, calls, says
from hermes.types.approvals import ProposedAction
from hermes.types.messages import (
    Accepted,
    Attachment,
    Body,
    Edited,
    MessageEvent,
    Pressed,
    Refused,
    Said,
    ToolMessage,
)
from hermes.types.tools import Tool, ToolContext

ASK = ("ask", {"question": "Red or blue?"})


def asking(**arguments: object) -> Answer:
    wanted: Mapping[str, object] = {"question": "Red or blue?", **arguments}
    return calls(("ask", wanted))


def results(model: ScriptedModel, request: int) -> list[str]:
    messages = model.requests[request].messages
    return [message.text for message in messages if isinstance(message, ToolMessage)]


async def test_messages_during_a_turn_are_announced_as_queued_and_answered_in_order(
    tmp_path: Path,
) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, says("one")), says("two"), says("three")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("a")
        await until(lambda: model.requests)
        server.says("b")
        server.says("c")
        await until(lambda: len(server.texts()) == 2)
        assert [text.partition(":")[0] for text in server.texts()] == ["Queued (1)", "Queued (2)"]
        assert len(model.requests) == 1
        go.set()
        await until(lambda: len(server.texts()) == 5)
    assert server.texts()[2:] == ["one", "two", "three"]
    said = [message.text for message in model.requests[2].messages]
    assert said == ["a", "one", "b", "two", "c"]


async def test_the_next_message_answers_an_open_question(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([asking(choices=("red", "blue")), says("red it is")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("paint it")
        await until(server.texts)
        assert server.texts()[0].startswith("Red or blue?\n\n1. red\n2. blue")
        await until(lambda: not gateway.busy)
        server.says("red")
        await until(lambda: len(server.texts()) == 2)
    assert server.texts()[1] == "red it is"
    assert results(model, 1) == ["the person said: red"]
    assert refused(model.requests[1]) is None


async def test_a_question_outlives_a_restart(tmp_path: Path) -> None:
    server = ChatServer()
    server.says("paint it")
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([asking()])):
        await until(server.texts)
    model = ScriptedModel([says("blue it is")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        assert not gateway.busy
        server.says("blue")
        await until(lambda: len(server.texts()) == 2)
    assert server.texts()[1] == "blue it is"
    assert results(model, 0) == ["the person said: blue"]


async def test_another_person_can_not_answer_the_question(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([asking(), says("hello Bob"), says("red it is")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("paint it", chat="g", user="ann", kind="group")
        await until(lambda: server.texts("g"))
        server.says("blue", chat="g", user="bob", kind="group")
        await until(lambda: len(server.texts("g")) == 2)
        assert server.texts("g")[1] == "hello Bob"
        server.says("red", chat="g", user="ann", kind="group")
        await until(lambda: len(server.texts("g")) == 3)
        assert await rows(gateway._store, "select decided_by, answer from questions") == [
            ("plain:ann", "red")
        ]


async def test_in_a_shared_session_others_wait_until_the_person_has_decided(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    model = ScriptedModel([asking(), says("red it is"), says("hello Bob")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("paint it", chat="c", user="ann", kind="channel")
        await until(lambda: server.texts("c"))
        server.says("blue", chat="c", user="bob", kind="channel")
        await until(lambda: len(server.texts("c")) == 2)
        assert "once this is decided: Red or blue?" in server.texts("c")[1]
        server.says("red", chat="c", user="ann", kind="channel")
        await until(lambda: len(server.texts("c")) == 4)
    assert server.texts("c")[2:] == ["red it is", "hello Bob"]


async def test_a_question_that_nobody_answers_expires_and_the_turn_continues(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    model = ScriptedModel([asking(expires_in=0.1), says("I chose red")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("paint it")
        await until(lambda: len(server.texts()) == 2)
    assert server.texts()[1] == "I chose red"
    assert results(model, 1) == ["nobody answered"]


async def test_stop_closes_a_turn_that_waits_for_an_answer(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([asking(), says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("paint it")
        await until(server.texts)
        server.says("/status")
        await until(lambda: "Waiting for you: Red or blue?" in server.texts())
        server.says("/stop")
        await until(lambda: "(stopped: by you)" in server.texts())
        server.says("hi")
        await until(lambda: "hello" in server.texts())
    assert results(model, 1) == ["Not finished: the turn was stopped."]
    assert refused(model.requests[1]) is None


async def test_if_one_of_two_calls_waits_the_other_runs_only_once(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(ASK, ("append", {"token": "x"})), says("done")])
    appended = tmp_path / "workspace" / "appended"
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("both")
        await until(server.texts)
        assert appended.read_text() == "x\n"
        await until(lambda: not gateway.busy)
        assert len(model.requests) == 1
        server.says("red")
        await until(lambda: len(server.texts()) == 2)
    assert appended.read_text() == "x\n"
    assert sorted(results(model, 1)) == ["appended x", "the person said: red"]
    assert refused(model.requests[1]) is None


async def test_the_turn_continues_only_when_every_question_is_answered(tmp_path: Path) -> None:
    server = ChatServer()
    other = ("ask", {"question": "How many?"})
    model = ScriptedModel([calls(ASK, other), says("three red ones")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("paint them")
        await until(server.texts)
        server.says("red")
        await until(lambda: "Noted. Still open: How many?" in server.texts())
        assert len(model.requests) == 1
        server.says("three")
        await until(lambda: "three red ones" in server.texts())
    assert results(model, 1) == ["the person said: red", "the person said: three"]
    assert refused(model.requests[1]) is None


def given(number: int, body: Body) -> MessageEvent:
    event = to_event(Update(id=number, chat="1", user="7", text=""), "plain")
    return replace(event, dedupe_key=f"body:{number}", body=body)


async def test_a_button_answers_its_own_question_only(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([asking(), says("blue it is")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        early = Pressed(question="nonsense", choice="blue")
        assert isinstance(await gateway.accept(given(1, early)), Refused)
        server.says("paint it")
        await until(server.texts)
        assert isinstance(await gateway.accept(given(2, early)), Refused)
        ((question,),) = await rows(gateway._store, "select id from questions")
        await gateway.accept(given(3, Pressed(question=question, choice="blue")))
        await until(lambda: "blue it is" in server.texts())


class Paint(msgspec.Struct):
    lasting: bool = True


async def paint(context: ToolContext, arguments: Paint) -> str:
    return "painted"


async def review_paint(context: ToolContext, arguments: Paint) -> ProposedAction:
    return ProposedAction(kind="paint", shown="red", reason="it is red", lasting=arguments.lasting)


PAINT = Tool(
    name="paint",
    description="Needs an approval.",
    arguments=Paint,
    handler=paint,
    review=review_paint,
)


@pytest.mark.parametrize(
    ("lasting", "pressed", "result", "outcome"),
    [
        (False, "Once", "painted", "Approved once"),
        (False, "Deny", "The person denied this action", "Denied"),
        (True, "Once", "painted", "Approved once"),
        (True, "Always", "painted", "Approved always"),
        (True, "Deny", "The person denied this action", "Denied"),
    ],
)
async def test_a_button_decides_an_approval(
    tmp_path: Path, pressed: str, result: str, outcome: str, *, lasting: bool
) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(("paint", {"lasting": lasting})), says("done")])
    conditions = replace(QUIET, tools=(PAINT,))
    async with running(tmp_path, [RichAdapter(server)], model, conditions) as gateway:
        server.says("go")
        await until(lambda: server.messages and server.messages["m1"].content.choices)
        (asked,) = server.messages["m1"].content.choices
        longer = ("This session", "Always") if lasting else ()
        assert asked.labels == ("Once", *longer, "Deny")
        assert "I am about to paint, which needs your approval:" in server.texts()[0]
        await until(lambda: not gateway.busy)
        server.presses(asked.question, "Never")
        server.presses(asked.question, pressed)
        await until(lambda: "done" in server.texts())
        await until(lambda: not server.messages["m1"].content.choices)
    assert results(model, 1)[0].startswith(result)
    assert server.texts()[0].endswith(f"{outcome} by rich:7.")


async def test_a_changed_message_is_not_answered_again(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        changed = Edited(message_id="1", text="hello")
        assert isinstance(await gateway.accept(given(1, changed)), Refused)


CAT = Attachment(kind="image", path="a", name="cat.png")


async def test_the_model_is_told_about_a_file_that_comes_with_an_answer(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([asking(), says("like the cat")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("paint it")
        await until(server.texts)
        await until(lambda: not gateway.busy)
        await gateway.accept(given(1, Said(text="like this", attachments=(CAT,))))
        await until(lambda: "like the cat" in server.texts())
    (told,) = results(model, 1)
    assert told.endswith("like this\n[image cat.png: came with the answer, not shown]")


async def test_the_reply_mentions_a_file_that_was_sent_with_a_command(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        receipt = await gateway.accept(given(1, Said(text="/status", attachments=(CAT,))))
    assert isinstance(receipt, Accepted)
    assert receipt.reply == "Idle.\nNot used: [image cat.png]"
