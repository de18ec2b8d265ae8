"""A turn can end by its limits, by a stop or by an error, and its data is stored in each case."""

from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from hermes.control.turns import finish_of, owed_content
from hermes.core.models.retry import Retrying
from hermes.core.tools.call import scope_of
from hermes.core.tools.terminal import terminal_tools
from hermes.settings.sections import AgentSettings
from hermes.state.questions import decide
from hermes.testing.commands import FILES_ONLY, lives, local_backend, no_process_left
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import (
    QUIET,
    TroubledStore,
    held,
    refused,
    rows,
    running,
    until,
    until_rows,
)
from hermes.testing.scripted import Answer, ScriptedModel, calls, fails, hangs, says
from hermes.testing.tools import ask
from hermes.testing.turns import a_turn
from hermes.types.errors import Disconnected, RateLimited
from hermes.types.events import TurnFinished, UsageReported
from hermes.types.execution import Sandbox, SandboxScope
from hermes.types.identity import OWNER, Principal, Source, new_id
from hermes.types.messages import (
    Asked,
    AssistantMessage,
    Content,
    MessageEvent,
    Origin,
    ToolMessage,
    UserMessage,
)
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


async def test_a_turn_ends_when_its_step_budget_is_used_up(tmp_path: Path) -> None:
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


async def test_a_tool_error_is_reported_to_the_model_and_the_turn_continues(tmp_path: Path) -> None:
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


async def test_a_model_error_is_reported_and_the_next_turn_works(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([fails(Disconnected("The model is out of reach."), "Well"), says("hi")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("a")
        await until(server.texts)
        assert server.texts() == ["The model is out of reach."]
        assert await rows(gateway._store, "select code from turns") == [("disconnected",)]
        server.says("b")
        await until(lambda: "hi" in server.texts())


async def test_a_stop_in_the_middle_of_an_answer_keeps_the_text_so_far(tmp_path: Path) -> None:
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


async def test_after_a_stop_while_tools_run_each_call_has_a_result(tmp_path: Path) -> None:
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


async def test_stop_acts_within_two_seconds_whatever_the_turn_waits_for(tmp_path: Path) -> None:
    server = ChatServer()
    pause = fails(RateLimited("too many requests", 50.0))
    answers = [hangs(), calls(("slow", {"seconds": 60})), calls(("ask", {})), pause]
    model = ScriptedModel(answers)
    async with running(tmp_path, [PlainAdapter(server)], Retrying(model)) as gateway:
        for number in range(1, len(answers) + 1):
            server.says("work")
            await until(lambda: len(model.requests) == number)  # noqa: B023
            if number == 3:
                await until(lambda: not gateway.busy)
            server.says("/stop")
            await until(lambda: server.texts().count("(stopped: by you)") == number, 2.0)  # noqa: B023
            await until(lambda: not gateway.busy)


async def test_a_stop_right_after_the_message_stops_its_turn(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([hangs(), hangs(), hangs()])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        for number in range(1, 4):
            server.says("think")
            server.says("/stop")
            # The test waits for the end of the turn. Otherwise the next message would be queued,
            # and `/stop` would not stop the turn of this message.
            await until(lambda: server.texts().count("(stopped: by you)") == number)  # noqa: B023
            await until(lambda: not gateway.busy)


@pytest.mark.parametrize("resting", ["before", "after"])
async def test_a_stop_while_the_turn_is_being_suspended_closes_it(
    tmp_path: Path, resting: str
) -> None:
    server, reached, go = ChatServer(), anyio.Event(), anyio.Event()

    async def before(name: str) -> None:
        if name == "TurnTransactions.close" and not reached.is_set():
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


async def test_the_command_stop_closes_a_turn_although_the_queue_of_its_session_has_failed(
    tmp_path: Path,
) -> None:
    server, broken = ChatServer(), [True]

    async def before(name: str) -> None:
        if name == "TurnTransactions.close" and broken:
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


def test_a_delivery_says_how_the_turn_ended() -> None:
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
async def test_the_usage_of_a_turn_is_stored_for_every_outcome(tmp_path: Path, end: str) -> None:
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


HIDDEN = "env -i setsid bash -c 'echo $$ > hidden; exec sleep 600' &"
BACKGROUND = {"command": f"{HIDDEN} echo $$ > pid; exec sleep 600", "background": True}
COMMANDS = replace(QUIET, tools=(*terminal_tools(60.0, "none"), ask))


def request(*, stateless: bool) -> MessageEvent:
    return MessageEvent(
        dedupe_key=new_id(),
        source=Source(platform="api", account="api", chat_kind="private", chat_id="s", user_id="k"),
        origin=Origin(trigger="api", principal=Principal(name="api", person=OWNER)),
        received_at=0.0,
        body=Asked(messages=(UserMessage(text="hi"),), stateless=stateless, detached=True),
    )


def processes(home: Path) -> list[int]:
    """Returns two process ids: of the background process, and of the hidden process that it starts.
    Returns an empty list if one of them has not started yet."""
    files = [home / "workspace" / name for name in ("pid", "hidden")]
    if all(file.exists() and file.read_text().endswith("\n") for file in files):
        return [int(file.read_text()) for file in files]
    return []


@pytest.mark.parametrize("end", ["completed", "failed", "stopped"])
async def test_background_processes_of_a_stateless_request_end_before_the_request(
    tmp_path: Path, end: str
) -> None:
    go = anyio.Event()
    last = {"completed": says("done"), "failed": fails(Disconnected("away")), "stopped": hangs()}
    model = ScriptedModel([calls(("terminal", BACKGROUND)), held(go, last[end])])
    with no_process_left():
        async with running(tmp_path, [], model, COMMANDS) as gateway:
            await gateway.accept(request(stateless=True))
            await until(lambda: processes(tmp_path))
            assert all(map(lives, processes(tmp_path)))
            go.set()
            if end == "stopped":
                await until(lambda: len(model.requests) == 2)
                gateway._runner.stop_all("stop")
            await until(lambda: gateway.busy == 0)
            assert await rows(gateway._store, "select state from turns") == [(end,)]
            assert not any(map(lives, processes(tmp_path)))


async def test_a_stateless_request_ends_a_process_that_has_killed_its_supervisor(
    tmp_path: Path,
) -> None:
    go, file = anyio.Event(), tmp_path / "workspace" / "pid"
    command = "kill -9 $PPID; echo $$ > pid; sleep 1000"
    wanted = calls(("terminal", {"command": command, "background": True}))
    model = ScriptedModel([wanted, held(go, says("done"))])
    with no_process_left():
        async with running(tmp_path, [], model, COMMANDS) as gateway:
            await gateway.accept(request(stateless=True))
            await until(lambda: file.exists() and file.read_text().endswith("\n"))
            go.set()
            await until(lambda: gateway.busy == 0)
            assert not lives(int(file.read_text()))


async def test_background_processes_of_a_session_continue(tmp_path: Path) -> None:
    model = ScriptedModel([calls(("terminal", BACKGROUND)), says("done")])
    with local_backend(tmp_path) as backend:
        async with running(tmp_path, [], model, replace(COMMANDS, backend=backend)) as gateway:
            await gateway.accept(request(stateless=False))
            await until(lambda: gateway.busy == 0)
            await until(lambda: processes(tmp_path))
        assert all(map(lives, processes(tmp_path)))
        sandbox = await backend.open(scope_of(a_turn(source=request(stateless=False).source)))
        for status in await sandbox.processes():
            await (await sandbox.process(status.id)).kill()
        assert not any(map(lives, processes(tmp_path)))


async def test_background_processes_of_a_stateless_request_end_after_a_crash(
    tmp_path: Path,
) -> None:
    dying = ScriptedModel([calls(("terminal", BACKGROUND)), hangs()])
    with no_process_left():
        async with running(tmp_path, [], dying, COMMANDS) as gateway:
            await gateway.accept(request(stateless=True))
            await until(lambda: processes(tmp_path))
        assert all(map(lives, processes(tmp_path)))
        async with running(tmp_path, [], ScriptedModel([says("done")]), COMMANDS) as gateway:
            await until(lambda: gateway.busy == 0)
            assert await rows(gateway._store, "select state from turns") == [("completed",)]
            assert not any(map(lives, processes(tmp_path)))


async def test_background_processes_of_a_stateless_request_run_while_the_turn_waits_for_an_answer(
    tmp_path: Path,
) -> None:
    model = ScriptedModel(
        [calls(("terminal", BACKGROUND)), calls(("ask", {"question": "Which?"})), says("done")]
    )
    with no_process_left():
        async with running(tmp_path, [], model, COMMANDS) as gateway:
            await gateway.accept(request(stateless=True))
            await until(lambda: processes(tmp_path))
            found = await until_rows(gateway._store, "select id from questions")
            await until(lambda: gateway.busy == 0)
            assert all(map(lives, processes(tmp_path)))
            await gateway._store.run(decide, str(found[0][0]), "answered", "this", "operator", 0.0)
            await gateway._sweep()
            await until(lambda: gateway.busy == 0)
            assert await rows(gateway._store, "select state from turns") == [("completed",)]
            assert not any(map(lives, processes(tmp_path)))


async def test_a_backend_that_fails_does_not_keep_a_stateless_request_open(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        isolation = "none"
        opened = 0

        async def open(self, scope: SandboxScope) -> Sandbox:
            self.opened += 1
            if self.opened > 1:
                raise KeyError("out of reach")
            return await FILES_ONLY.open(scope)

        async def end(self, handle: str) -> bool:
            return False

    model = ScriptedModel([calls(("terminal", BACKGROUND)), says("done")])
    conditions = replace(COMMANDS, backend=Broken())
    async with running(tmp_path, [], model, conditions) as gateway:
        await gateway.accept(request(stateless=True))
        await until(lambda: gateway.busy == 0)
        assert await rows(gateway._store, "select state from turns") == [("completed",)]
    assert "background processes of" in caplog.text
