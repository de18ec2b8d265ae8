"""Messages that arrive while a turn runs are queued, steer the turn or interrupt it."""

import time
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control.gateway import Gateway
from hermes.control.incoming import IntakeResult
from hermes.control.steering import ENTERED
from hermes.control.waiting_messages import STEERED
from hermes.settings.sections import DisplaySettings
from hermes.testing.platforms import ChatServer, PlainAdapter, Update, to_event
from hermes.testing.running import QUIET, held, refused, rows, running, until
from hermes.testing.scripted import ScriptedModel, calls, says
from hermes.types.events import TextDelta, TurnFinished
from hermes.types.identity import OWNER, PersonId, Principal, TurnId
from hermes.types.messages import Accepted, Attachment, MessageEvent, Origin, Said, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.people import Role

STEERING = replace(QUIET, display=DisplaySettings(busy_input_mode="steer"))
INTERRUPTING = replace(QUIET, display=DisplaySettings(busy_input_mode="interrupt"))
APPEND = ("append", {"token": "x"})


def texts(request: ModelRequest) -> list[str]:
    """Returns the texts of the people in the request."""
    return [one.text for one in request.messages if isinstance(one, UserMessage)]


async def test_a_message_that_steers_enters_the_turn_before_the_next_model_call(
    tmp_path: Path,
) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, calls(APPEND)), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], model, STEERING) as gateway:
        server.says("work")
        await until(lambda: model.requests)
        server.says("in blue")
        server.says("and red")
        await until(lambda: server.texts() == [STEERED, STEERED])
        go.set()
        await until(lambda: "done" in server.texts())
        await until(lambda: not gateway.busy)
        states = await rows(gateway._store, "select state, turn from inbox order by seq")
    assert texts(model.requests[1]) == ["work", "in blue", "and red"]
    assert refused(model.requests[1]) is None
    assert len({turn for _, turn in states}) == 1
    assert [state for state, _ in states] == ["done"] * 3


@pytest.mark.parametrize("text", ["in blue", "/steer in blue"])
async def test_a_message_of_another_person_does_not_enter_the_turn(
    tmp_path: Path, text: str
) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, calls(APPEND)), says("done"), says("blue")])
    async with running(tmp_path, [PlainAdapter(server)], model, STEERING):
        server.says("work")
        await until(lambda: model.requests)
        server.says(text, user="8")
        await until(server.texts)
        assert server.texts()[0].startswith("Queued (1)")
        go.set()
        await until(lambda: server.texts()[1:] == ["done", "blue"])
    assert texts(model.requests[1]) == ["work"]
    assert texts(model.requests[2])[-1] == "in blue"


async def test_a_message_that_comes_too_late_to_steer_gets_a_turn_of_its_own(
    tmp_path: Path,
) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, says("one")), says("two"), says("three")])
    async with running(tmp_path, [PlainAdapter(server)], model, STEERING):
        server.says("a")
        await until(lambda: model.requests)
        server.says("b")
        server.says("c")
        await until(lambda: len(server.texts()) == 2)
        go.set()
        await until(lambda: "three" in server.texts())
    assert server.texts()[2:] == ["one", "two", "three"]
    # The third message was meant for the first turn, so it does not enter the second turn.
    assert texts(model.requests[1]) == ["a", "b"]


async def test_a_message_that_steers_a_suspended_turn_enters_it_after_the_decision(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(("ask", {"question": "Red?"})), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("paint")
        await until(server.texts)
        await until(lambda: not gateway.busy)
        server.says("/steer and quickly")
        await until(lambda: STEERED in server.texts())
        server.says("yes")
        await until(lambda: "done" in server.texts())
    assert texts(model.requests[1]) == ["paint", "and quickly"]


async def test_a_message_steers_a_turn_that_another_process_runs(tmp_path: Path) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, calls(APPEND)), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], model) as one:
        server.says("work")
        await until(lambda: model.requests)
        async with running(tmp_path, [], ScriptedModel([]), STEERING) as two:
            await two.accept(to_event(Update(id=9, chat="1", user="7", text="in blue"), "plain"))
            await until(lambda: one._runner._steered)
            go.set()
            await until(lambda: "done" in server.texts())
    assert texts(model.requests[1]) == ["work", "in blue"]


async def test_an_interrupting_message_stops_the_turn_and_is_answered(tmp_path: Path) -> None:
    server = ChatServer()
    cut = held(anyio.Event(), says("never"), said="As I was")
    model = ScriptedModel([cut, says("four")])
    async with running(tmp_path, [PlainAdapter(server)], model, INTERRUPTING):
        server.says("talk")
        await until(lambda: model.requests)
        server.says("two and two?")
        await until(lambda: "four" in server.texts())
    assert server.texts() == ["As I was\n\n(stopped: by you)", "four"]


async def test_a_message_sent_with_the_command_queue_waits_in_a_chat_with_mode_interrupt(
    tmp_path: Path,
) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, calls(APPEND)), says("one"), says("two")])
    async with running(tmp_path, [PlainAdapter(server)], model, INTERRUPTING):
        server.says("work")
        await until(lambda: model.requests)
        server.says("/queue later")
        await until(server.texts)
        assert server.texts()[0].startswith("Queued (1)")
        go.set()
        await until(lambda: "two" in server.texts())
    assert texts(model.requests[1]) == ["work"]
    assert texts(model.requests[2]) == ["work", "later"]


async def test_the_mode_of_a_chat_does_not_apply_to_a_caller_that_waits_for_its_answer(
    tmp_path: Path,
) -> None:
    go = anyio.Event()
    model = ScriptedModel([held(go, calls(APPEND)), says("one"), says("two")])
    async with running(tmp_path, [], model, INTERRUPTING) as gateway:
        await gateway.accept(typed(1, "work"))
        await until(lambda: model.requests)
        receipt = await gateway.accept(typed(2, "next"))
        assert isinstance(receipt, Accepted)
        assert receipt.turn == receipt.id
        steered = await gateway.accept(typed(3, "/steer quickly"))
        assert isinstance(steered, Accepted)
        assert steered.turn is not None
        go.set()
        told = [one.event async for one in gateway.follow(TurnId(steered.turn))]
        await until(lambda: len(model.requests) == 3)
    assert texts(model.requests[1]) == ["work", "quickly"]
    assert texts(model.requests[2]) == ["work", "quickly", "next"]
    assert told == [TextDelta(text=ENTERED), TurnFinished(outcome="completed")]


def typed(number: int, text: str) -> MessageEvent:
    """Returns a message from a terminal."""
    event = to_event(Update(id=number, chat="1", user="7", text=text), "plain")
    return replace(event, origin=Origin(principal=Principal(name="cli", person=OWNER)))


# --- parts -----------------------------------------------------------------------------------


def part(number: int, text: str, *, album: str = "", cut_with: str | None = None) -> MessageEvent:
    event = to_event(Update(id=number, chat="1", user="7", text=text), "plain")
    files = (Attachment(kind="image", path=f"{number}.png", name=f"{number}.png"),)
    body = Said(text=text, message_id=str(number), attachments=files if album else ())
    return replace(event, body=body, album=album, cut_with=cut_with)


LATER = time.time() + 3600
"""A time that no clock reaches during a test. A message that seems to arrive at this time waits for
its further parts until the test calls `release`."""


async def take(gateway: Gateway, event: MessageEvent, now: float = LATER) -> IntakeResult:
    """Stores an event as if it had arrived at this time."""
    key = gateway.session_of(event)
    person = PersonId("plain:7")
    return await gateway._store.run(gateway._intake.take, event, key, person, now, role=Role.USER)


async def release(gateway: Gateway) -> None:
    """Makes the gateway stop waiting for further parts of messages."""
    await rows(gateway._store, "update inbox set not_before = 0 returning id")
    gateway.notice_change()


async def test_the_parts_of_an_album_become_one_message(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([says("nice"), says("late")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        for number, text in enumerate(["look", "", ""], 1):
            await take(gateway, part(number, text, album="a"))
        await release(gateway)
        await until(lambda: "nice" in server.texts())
        # A part that comes after the answer has begun is a message of its own.
        await gateway.accept(part(4, "", album="a"))
        await until(lambda: "late" in server.texts())
        turns = await rows(gateway._store, "select distinct turn from inbox where seq <= 3")
    (said,) = [one for one in model.requests[0].messages if isinstance(one, UserMessage)]
    assert said.text == "look"
    assert [file.name for file in said.attachments] == ["1.png", "2.png", "3.png"]
    assert len(turns) == 1
    assert len(texts(model.requests[1])) == 2
    assert server.texts() == ["nice", "late"]


async def test_the_pieces_of_a_long_text_become_one_message_without_a_pause(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        first = await take(gateway, part(1, "one tw", cut_with=""), LATER)
        await take(gateway, part(2, "o three", cut_with="\n"), LATER + 0.9)
        last = await take(gateway, part(3, "four"), LATER + 1.8)
    assert (first.claim, first.due) == (None, LATER + 1)
    # The last piece of the text is short, so no further piece is expected and the turn is opened at
    # once.
    assert last.claim is not None
    assert [one.text for one in last.claim.turn.history] == ["one two three\nfour"]


async def test_only_the_next_message_of_the_same_sender_continues_a_long_text(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        first = await take(gateway, part(1, "long", cut_with=""), LATER)
        stranger = part(2, "hi")
        stranger = replace(stranger, source=replace(stranger.source, user_id="8"))
        other = await take(gateway, stranger, LATER + 0.1)
        mine = await take(gateway, part(3, "mine"), LATER + 0.2)
        late = await take(gateway, part(4, "late"), LATER + 1.5)
    turns = [
        one.receipt.turn for one in (first, other, mine, late) if isinstance(one.receipt, Accepted)
    ]
    assert len(set(turns)) == 4


async def test_a_message_that_waits_for_parts_is_answered_without_them_also_after_a_restart(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])) as gateway:
        await gateway.accept(part(1, "look", album="a"))
    model = ScriptedModel([says("nice"), says("read")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        await until(lambda: "nice" in server.texts())
        await gateway.accept(part(2, "long", cut_with=""))
        await until(lambda: "read" in server.texts())
    assert texts(model.requests[1]) == ["look", "long"]


async def test_parts_are_joined_while_a_turn_runs_and_enter_it_as_one_message(
    tmp_path: Path,
) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, calls(APPEND)), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], model, STEERING) as gateway:
        server.says("work")
        await until(lambda: model.requests)
        await take(gateway, part(8, "first", cut_with="\n"))
        await take(gateway, part(9, "second"))
        gateway.notice_change()
        await until(lambda: gateway._runner._steered and server.texts() == [STEERED])
        go.set()
        await until(lambda: "done" in server.texts())
    assert server.texts() == [STEERED, "done"]
    assert texts(model.requests[1]) == ["work", "first\nsecond"]
