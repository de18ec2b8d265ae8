"""If a person edits a message that is not answered yet, the new text is answered."""

import logging
import time
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control.event_content import EDITED
from hermes.testing.platforms import ChatServer, EditingAdapter, PlainAdapter, Update, to_event
from hermes.testing.running import held, refused, rows, running, until
from hermes.testing.scripted import ScriptedModel, calls, hangs, says
from hermes.types.identity import PersonId
from hermes.types.messages import Attachment, Refused, Said, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.people import Role


def texts(request: ModelRequest) -> list[str]:
    """Returns the texts of the person in the request."""
    return [one.text for one in request.messages if isinstance(one, UserMessage)]


async def test_an_edit_of_the_message_of_a_running_turn_stops_it_and_reuses_its_preview(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    cut = held(anyio.Event(), says("never"), said="Red is a colour. ")
    model = ScriptedModel(
        [calls(("append", {"token": "x"})), cut, says("Blue is better."), says("Then wait.")]
    )
    async with running(tmp_path, [EditingAdapter(server)], model) as gateway:
        number = server.says("paint it red")
        await until(lambda: server.texts() and "Red is" in server.texts()[0])
        server.says("and then?")
        await until(lambda: len(server.texts()) == 2)
        edit = server.edits(number, "paint it blue")
        await until(lambda: "Then wait." in server.texts())
        server.repeat(edit)
        server.says("/status")
        await until(lambda: "Idle." in server.texts())
        states = await rows(gateway._store, "select state from turns order by id")
    shown = list(server.messages.values())
    assert shown[0].text == "Blue is better."
    assert shown[0].versions[0].startswith("Red is")
    assert [text for text in server.texts() if "stopped" in text] == []
    said = texts(model.requests[2])
    assert said == ["paint it red", f"{EDITED}\npaint it blue"]
    assert "appended x" in str(model.requests[2].messages)
    assert refused(model.requests[2]) is None
    assert texts(model.requests[3])[-1] == "and then?"
    assert sorted(state for (state,) in states) == ["completed", "completed", "stopped"]


async def test_an_edit_of_a_queued_message_replaces_its_text(tmp_path: Path) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, says("one")), says("two")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("a")
        await until(lambda: model.requests)
        number = server.says("/queue b")
        await until(server.texts)
        server.edits(number, "/queue c")
        server.edits(number, "d")
        server.edits(number, "/stop")
        server.says("/status")
        await until(lambda: len(server.texts()) == 2)
        go.set()
        await until(lambda: "two" in server.texts())
        await until(lambda: not gateway.busy)
    assert texts(model.requests[1]) == ["a", "d"]


@pytest.mark.parametrize("text", ["answered", "other"])
async def test_an_edit_of_an_answered_message_is_ignored(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server, model = ChatServer(), ScriptedModel([says("one")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        number = server.says("answered")
        await until(server.texts)
        await until(lambda: not gateway.busy)
        edit = Update(id=99, chat="1", user="7", text=text, edits=number)
        assert isinstance(await gateway.accept(to_event(edit, "plain")), Refused)
    assert len(model.requests) == 1
    assert "refused" not in caplog.text


async def test_an_edit_that_changes_no_text_does_not_stop_the_turn(tmp_path: Path) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, says("one"))])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        number = server.says("a")
        await until(lambda: model.requests)
        same = Update(id=99, chat="1", user="7", text="a", edits=number)
        assert isinstance(await gateway.accept(to_event(same, "plain")), Refused)
        go.set()
        await until(lambda: server.texts() == ["one"])


async def test_an_edit_of_a_message_whose_turn_waits_for_a_person_opens_a_new_turn(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(("ask", {"question": "Red?"})), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        number = server.says("paint")
        await until(server.texts)
        await until(lambda: not gateway.busy)
        server.edits(number, "paint it blue")
        await until(lambda: "done" in server.texts())
    assert server.texts()[1:] == ["done"]
    assert refused(model.requests[1]) is None


async def test_an_edit_of_the_caption_of_an_album_keeps_the_files(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([hangs(), says("two cats")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        for number, text in ((1, "a dog"), (2, "")):
            file = Attachment(kind="image", path=f"{number}.png", name=f"{number}.png")
            event = to_event(Update(id=number, chat="1", user="7", text=text), "plain")
            body = Said(text=text, message_id=str(number), attachments=(file,))
            event = replace(event, body=body, album="a")
            key, person = gateway.session_of(event), PersonId("plain:7")
            later = time.time() + 3600
            take = gateway._intake.take
            await gateway._store.run(take, event, key, person, later, role=Role.USER)
        await rows(gateway._store, "update inbox set not_before = 0 returning id")
        gateway.notice_change()
        await until(lambda: model.requests)
        edit = Update(id=9, chat="1", user="7", text="a cat", edits=1)
        await gateway.accept(to_event(edit, "plain"))
        await until(lambda: "two cats" in server.texts())
    last = model.requests[1].messages[-1]
    assert isinstance(last, UserMessage)
    assert last.text == f"{EDITED}\na cat"
    assert [file.name for file in last.attachments] == ["1.png", "2.png"]
