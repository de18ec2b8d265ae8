"""How a turn ends: by its limits, by a stop, by a fault, and what is kept of it."""

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control.turns import finish_of, owed_content
from hermes.settings.sections import AgentSettings
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, TroubledStore, held, refused, rows, running, until
from hermes.testing.scripted import Answer, ScriptedModel, calls, fails, hangs, says
from hermes.types.errors import Disconnected
from hermes.types.events import TurnFinished, UsageReported
from hermes.types.messages import AssistantMessage, Content, ToolMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit
from hermes.types.turns import Completed, Failed, Stopped, Suspended


async def test_the_deadline_ends_a_turn_with_a_notice(tmp_path: Path) -> None:
    server, hasty = ChatServer(), AgentSettings(turn_timeout=0.2, drain_seconds=0.0)
    model = ScriptedModel([hangs(), says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model, replace(QUIET, agent=hasty)) as g:
        server.says("think")
        await until(server.texts)
        assert "time limit" in server.texts()[0]
        assert await rows(g._store, "select state, code from turns") == [("failed", "deadline")]
        server.says("hi")
        await until(lambda: "hello" in server.texts())
    assert refused(model.requests[1]) is None


async def test_the_budget_of_steps_ends_a_turn(tmp_path: Path) -> None:
    server, short = ChatServer(), AgentSettings(max_turns=2, drain_seconds=0.0)
    step = calls(("slow", {"seconds": 0}))
    model = ScriptedModel([step, step, says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model, replace(QUIET, agent=short)):
        server.says("work")
        await until(server.texts)
        assert server.texts()[0].startswith("I stopped after 2 steps")
        server.says("go on")
        await until(lambda: "hello" in server.texts())
    assert refused(model.requests[2]) is None


async def test_a_tool_that_breaks_is_told_to_the_model_and_the_turn_goes_on(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(("append", {"token": "x"}), ("boom", {})), says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("break")
        await until(server.texts)
        assert server.texts() == ["hello"]
    assert refused(model.requests[1]) is None
    results = [m for m in model.requests[1].messages if isinstance(m, ToolMessage)]
    assert [(m.text, m.failed) for m in results] == [
        ("appended x", False),
        ("The tool failed: RuntimeError: boom", True),
    ]


async def test_a_model_that_fails_is_told_and_the_next_turn_works(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([fails(Disconnected("The model is out of reach."), "Well"), says("hi")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("a")
        await until(server.texts)
        assert server.texts() == ["The model is out of reach."]
        assert await rows(gateway._store, "select code from turns") == [("disconnected",)]
        server.says("b")
        await until(lambda: "hi" in server.texts())


async def test_a_stop_in_the_middle_of_the_words_keeps_them(tmp_path: Path) -> None:
    server = ChatServer()
    cut = held(anyio.Event(), says("never"), said="As I was say")
    model = ScriptedModel([calls(("append", {"token": "x"})), cut, says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("talk")
        await until(lambda: len(model.requests) == 2)
        server.says("/stop")
        await until(lambda: "As I was say\n\n(stopped: by you)" in server.texts())
        server.says("go on")
        await until(lambda: "hello" in server.texts())
    said = model.requests[2].messages
    assert AssistantMessage(text="As I was say") in said
    assert refused(model.requests[2]) is None


async def test_a_stop_while_tools_run_pairs_their_calls(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(("slow", {}), ("slow", {})), says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("sleep")
        await until(lambda: model.requests)
        server.says("/stop")
        await until(lambda: "(stopped: by you)" in server.texts())
        server.says("hi")
        await until(lambda: "hello" in server.texts())
    assert refused(model.requests[1]) is None


async def test_a_stop_right_after_the_message_stops_its_turn(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([hangs(), hangs(), hangs()])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        for _ in range(3):
            server.says("think")
            server.says("/stop")
        await until(lambda: server.texts().count("(stopped: by you)") == 3)
        await until(lambda: not gateway.busy)


@pytest.mark.parametrize("resting", ["before", "after"])
async def test_a_stop_while_the_turn_is_being_suspended_closes_it(
    tmp_path: Path, resting: str
) -> None:
    server, reached, go = ChatServer(), anyio.Event(), anyio.Event()

    async def before(name: str) -> None:
        if name == "Desk.close" and not reached.is_set():
            reached.set()
            await go.wait()

    troubled = replace(QUIET, wrap_store=lambda store: TroubledStore(store, before))
    model = ScriptedModel([calls(("ask", {})), says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model, troubled) as gateway:
        server.says("paint it")
        await reached.wait()
        if resting == "after":
            go.set()
            await until(lambda: not gateway.busy)
        server.says("/stop")
        await until(lambda: "Stopped." in server.texts())
        go.set()
        await until(lambda: "(stopped: by you)" in server.texts())
        server.says("hi")
        await until(lambda: "hello" in server.texts())
    assert refused(model.requests[1]) is None


async def test_stop_closes_a_turn_whose_lane_broke(tmp_path: Path) -> None:
    server, broken = ChatServer(), [True]

    async def before(name: str) -> None:
        if name == "Desk.close" and broken:
            broken.clear()
            raise RuntimeError("a fault of ours")

    troubled = replace(QUIET, wrap_store=lambda store: TroubledStore(store, before))
    model = ScriptedModel([says("lost"), says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model, troubled) as gateway:
        server.says("a")
        await until(lambda: not broken and not gateway.busy)
        server.says("b")
        await until(lambda: any(text.startswith("Queued") for text in server.texts()))
        server.says("/stop")
        await until(lambda: "hello" in server.texts())


def test_what_a_chat_is_owed_says_how_the_turn_ended() -> None:
    done = Completed(message=AssistantMessage(text="world"))
    assert owed_content(["hello"], [], done) == Content(text="hello\n\nworld")
    assert owed_content([" "], [], Completed(message=AssistantMessage())) is None
    assert finish_of(Suspended(questions=())) == TurnFinished(outcome="suspended")
    assert finish_of(Stopped(reason="by you")).text == "by you"
    assert finish_of(Failed(reason="why", code="c")).code == "c"


def counted(answer: Answer, read: int, written: int, cost: float | None) -> Answer:
    async def count(request: ModelRequest, emit: Emit) -> AssistantMessage:
        emit(UsageReported(prompt_tokens=read, completion_tokens=written, cost=cost))
        return await answer(request, emit)

    return count


@pytest.mark.parametrize("end", ["completed", "failed"])
async def test_what_a_turn_used_is_kept_however_it_ends(tmp_path: Path, end: str) -> None:
    last = says("hello") if end == "completed" else fails(Disconnected("away"))
    step = calls(("slow", {"seconds": 0}))
    model = ScriptedModel([counted(step, 100, 5, 0.25), counted(last, 200, 7, 0.5)])
    server = ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("hi")
        await until(server.texts)
        found = await rows(
            gateway._store, "select state, prompt_tokens, completion_tokens, cost from turns"
        )
    assert found == [(end, 300, 12, 0.75)]


async def test_a_price_that_is_not_known_is_not_guessed(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([counted(says("hello"), 100, 5, None)])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("hi")
        await until(server.texts)
        assert await rows(gateway._store, "select prompt_tokens, cost from turns") == [(100, None)]


async def test_a_chat_is_told_that_its_answer_was_cut_off(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([says("Once upon", cut="length"), says("a time")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("a story")
        await until(server.texts)
        server.says("continue")
        await until(lambda: len(server.texts()) == 2)
    assert server.texts()[0].startswith("Once upon\n\n(The answer was cut off at the model's limit")
    told = model.requests[1].messages[1]
    assert told == AssistantMessage(text="Once upon", cut="length"), "the model sees no notice"
