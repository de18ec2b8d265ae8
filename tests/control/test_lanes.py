"""A lane runs the turns of one session in order, and ends after the last turn."""

import asyncio
from functools import partial
from pathlib import Path

import anyio
import pytest

from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import held, rows, running, until
from hermes.testing.scripted import Answer, ScriptedModel, says
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit


async def test_the_messages_of_a_session_are_answered_one_after_the_other(tmp_path: Path) -> None:
    first = anyio.Event()
    server, model = ChatServer(), ScriptedModel([held(first, says("one")), says("two")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("a")
        await until(lambda: model.requests)
        server.says("b")
        await until(lambda: any("Queued" in text for text in server.texts()))
        assert len(model.requests) == 1
        assert gateway.busy == 1
        first.set()
        await until(lambda: server.texts()[-1] == "two")
        await until(lambda: not gateway.busy)
    assert [message.text for message in model.requests[1].messages] == ["a", "one", "b"]


async def test_sessions_do_not_wait_for_each_other(tmp_path: Path) -> None:
    first = anyio.Event()
    server, model = ChatServer(), ScriptedModel([held(first, says("one")), says("two")])
    async with running(tmp_path, [PlainAdapter(server)], model):
        server.says("a", chat="1")
        await until(lambda: model.requests)
        server.says("b", chat="2")
        await until(lambda: server.texts("2") == ["two"])
        assert server.texts("1") == []
        first.set()
        await until(lambda: server.texts("1") == ["one"])


async def test_the_task_of_a_lane_that_has_ended_runs_the_next_lane(tmp_path: Path) -> None:
    tasks: list[object] = []

    async def answer(request: ModelRequest, emit: Emit) -> AssistantMessage:
        tasks.append(asyncio.current_task())
        return AssistantMessage(text="done")

    server = ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([answer] * 3)) as gateway:
        for chat in ("1", "2", "3"):
            server.says("a", chat=chat)
            await until(partial(server.texts, chat))
            await until(lambda: not gateway.busy)
    assert len(set(tasks)) == 1


def breaks() -> Answer:
    """Returns a scripted answer that raises an unexpected exception, as a bug in our code would.
    The exception is not an error of the model."""

    async def answer(request: ModelRequest, emit: Emit) -> AssistantMessage:
        raise ZeroDivisionError

    return answer


async def test_an_unexpected_error_ends_its_turn_and_the_next_turn_of_the_session_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, model = ChatServer(), ScriptedModel([breaks(), says("two")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("a")
        await until(server.texts)
        server.says("b")
        await until(lambda: server.texts()[-1] == "two")
        await until(lambda: not gateway.busy)
        assert await rows(gateway._store, "select state from turns order by id") == [
            ("failed",),
            ("completed",),
        ]
    assert "ZeroDivisionError" in caplog.text
