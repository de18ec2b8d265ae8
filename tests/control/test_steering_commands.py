"""The commands /retry, /undo and /background."""

from pathlib import Path

import anyio
from msgspec.structs import replace

from hermes.state import compactions
from hermes.testing.platforms import ChatServer, PlainAdapter, Update, to_event
from hermes.testing.running import held, refused, rows, running, until
from hermes.testing.scripted import ScriptedModel, calls, hangs, says
from hermes.types.identity import OWNER, Principal
from hermes.types.messages import Accepted, Attachment, Origin, Said, UserMessage


async def test_the_command_retry_removes_the_last_exchange_and_answers_its_message_again(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    model = ScriptedModel(
        [says("one"), calls(("append", {"token": "x"})), says("bad"), says("good"), says("end")]
    )
    file = Attachment(kind="image", path="cat.png", name="cat.png")
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("a")
        await until(lambda: server.texts() == ["one"])
        event = to_event(Update(id=50, chat="1", user="7", text="b"), "plain")
        body = Said(text="b", message_id="50", attachments=(file,))
        await gateway.accept(replace(event, body=body))
        await until(lambda: "bad" in server.texts())
        await until(lambda: not gateway.busy)
        server.says("/retry")
        await until(lambda: "good" in server.texts())
        server.says("c")
        await until(lambda: "end" in server.texts())
    asked = model.requests[3].messages
    assert [one.text for one in asked] == ["a", "one", "b"]
    assert isinstance(asked[2], UserMessage)
    assert asked[2].attachments == (file,)
    assert [one.text for one in model.requests[4].messages] == ["a", "one", "b", "good", "c"]


async def test_the_command_undo_removes_exchanges_and_shows_their_texts(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([says("1"), says("2"), says("3"), says("4")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        for number, text in enumerate(["a", "b", "c " * 200], 1):
            server.says(text)
            await until(lambda: str(number) in server.texts())  # noqa: B023
        await until(lambda: not gateway.busy)
        server.says("/undo 2")
        await until(lambda: len(server.texts()) == 4)
        reply = server.texts()[3].splitlines()
        server.says("d")
        await until(lambda: "4" in server.texts())
        server.says("/undo 9")
        await until(lambda: "Removed 2 exchanges" in server.texts()[-1])
        server.says("/undo")
        await until(lambda: "nothing to remove" in server.texts()[-1])
        kept = await rows(gateway._store, "select count(*) from messages")
        # The command that removes summaries does not bring removed messages back.
        assert await gateway._store.run(compactions.restore, "agent:main:plain:private:1") == 0
        server.says("/retry")
        await until(lambda: "no message to answer" in server.texts()[-1])
    assert reply[:3] == ["Removed 2 exchanges from the conversation:", "", "- b"]
    assert reply[3].startswith("- c c c")
    assert reply[3].endswith("…")
    assert [one.text for one in model.requests[3].messages] == ["a", "1", "d"]
    assert kept == [(8,)]


async def test_a_command_without_its_argument_says_what_is_missing(tmp_path: Path) -> None:
    server = ChatServer()
    wanted = {
        "/undo": "There is nothing to remove",
        "/undo x": "/undo N removes",
        "/undo 0": "/undo N removes",
        "/retry": "There is no message",
        "/queue": "/queue TEXT",
        "/steer ": "/steer TEXT",
        "/background": "/background TEXT",
    }
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])):
        for text in wanted:
            server.says(text)
        await until(lambda: len(server.texts()) == len(wanted))
    for reply, start in zip(server.texts(), wanted.values(), strict=True):
        assert reply.startswith(start)


async def test_a_running_turn_can_not_be_removed(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([hangs()])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("work")
        await until(lambda: model.requests)
        server.says("/undo")
        server.says("/retry")
        await until(lambda: len(server.texts()) == 2)
    assert server.texts()[0].startswith("/undo can't be used during a turn")
    assert server.texts()[1].startswith("/retry can't be used during a turn")


async def test_in_an_idle_session_the_commands_queue_and_steer_send_an_ordinary_message(
    tmp_path: Path,
) -> None:
    server, model = ChatServer(), ScriptedModel([says("hi"), says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.repeat(server.says("/queue one"))
        await until(lambda: server.texts() == ["hi"])
        await until(lambda: not gateway.busy)
        server.repeat(server.says("/steer two"))
        await until(lambda: server.texts() == ["hi", "hello"])
    assert [one.text for one in model.requests[1].messages] == ["one", "hi", "two"]


async def test_the_command_background_gets_its_answer_in_a_separate_session(
    tmp_path: Path,
) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([says("hi"), held(go, says("The tax report: done.")), says("sure")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("hello")
        await until(lambda: "hi" in server.texts())
        server.says("/background write the tax report")
        await until(lambda: len(model.requests) == 2)
        server.says("another thing")
        await until(lambda: "sure" in server.texts())
        go.set()
        await until(lambda: "The tax report: done." in server.texts())
        sessions = await rows(gateway._store, "select key from sessions order by key")
    assert server.texts()[1].startswith("I work on it in the background")
    assert [one.text for one in model.requests[1].messages] == ["write the tax report"]
    assert "which task it belongs to" in model.requests[1].system + model.requests[1].ephemeral
    assert [one.text for one in model.requests[2].messages] == ["hello", "hi", "another thing"]
    assert len(sessions) == 2
    assert all(refused(request) is None for request in model.requests)


async def test_the_command_background_needs_a_chat(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        event = to_event(Update(id=1, chat="1", user="7", text="/background x"), "plain")
        origin = Origin(principal=Principal(name="cli", person=OWNER))
        receipt = await gateway.accept(replace(event, origin=origin))
    assert isinstance(receipt, Accepted)
    assert receipt.failed
