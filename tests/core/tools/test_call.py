"""A tool call is marked as started, runs, and has a result in every case. Its events and its result
contain no secrets."""

from pathlib import Path

import msgspec
import pytest

from hermes.core.tools.call import (
    FAULT_LENGTH,
    PROGRESS_LENGTH,
    SHOWN_CHANGE,
    CallRunner,
    ToolRuntime,
)
from hermes.core.tools.results import ResultFilter
from hermes.state.spill import Spill
from hermes.testing.commands import FILES_ONLY
from hermes.testing.tools import append, slow
from hermes.testing.turns import NO_SPILL, Notebook, a_turn, files_of
from hermes.types.errors import ClaimLost, StoreUnavailable, ToolFailed
from hermes.types.events import AgentEvent, ToolFinished, ToolProgress, ToolStarted
from hermes.types.identity import CallId
from hermes.types.messages import ToolCall, ToolMessage
from hermes.types.tools import AnyTool, Tool, ToolContext


def runner(
    workspace: Path,
    notes: Notebook,
    events: list[AgentEvent],
    *tools: AnyTool,
    results: ResultFilter = NO_SPILL,
) -> CallRunner:
    turn = a_turn(workspace=workspace)
    named = {tool.name: tool for tool in tools}
    return CallRunner(turn, named, files_of(turn), events.append, notes, results)


class Nothing(msgspec.Struct):
    pass


class Words(msgspec.Struct):
    text: str
    times: int


def call(name: str, arguments: str) -> ToolCall:
    return ToolCall(id=CallId("t_0_0"), name=name, arguments=arguments)


async def test_a_call_that_must_not_run_twice_is_marked_before_it_runs(tmp_path: Path) -> None:
    notes, events = Notebook(), list[AgentEvent]()
    made = call("append", '{"token": "x"}')
    result = await runner(tmp_path, notes, events, append).run(made)
    assert result == ToolMessage(call=made.id, text="appended x")
    assert notes.log == ["started", "answered appended x"]
    assert [type(event) for event in events] == [ToolStarted, ToolFinished]


async def test_a_repeatable_call_is_not_marked_and_may_report_progress(tmp_path: Path) -> None:
    notes, events = Notebook(), list[AgentEvent]()
    await runner(tmp_path, notes, events, slow).run(call("slow", '{"seconds": 0}'))
    assert notes.log == ["answered slept for 0.0 s"]
    assert ToolProgress(call=CallId("t_0_0"), text="sleeping") in events


async def test_progress_texts_contain_no_secrets(tmp_path: Path) -> None:
    events = list[AgentEvent]()
    results = ResultFilter(Spill(tmp_path), redact=lambda text: text.replace("sleeping", "…"))
    running = runner(tmp_path, Notebook(), events, slow, results=results)
    await running.run(call("slow", '{"seconds": 0}'))
    assert ToolProgress(call=CallId("t_0_0"), text="…") in events


@pytest.mark.parametrize(
    "arguments",
    ["{", "[]", "null", '{"token": 1}', '{"token": "\\ud800"}', '{"token":' + "[" * 100_000],
)
async def test_invalid_arguments_give_a_failed_result(tmp_path: Path, arguments: str) -> None:
    notes, events = Notebook(), list[AgentEvent]()
    result = await runner(tmp_path, notes, events, append).run(call("append", arguments))
    assert result.failed
    assert result.text.startswith("The arguments of append are not valid")
    assert list(tmp_path.iterdir()) == []


async def test_empty_arguments_are_an_empty_object(tmp_path: Path) -> None:
    async def fail(context: ToolContext, arguments: Nothing) -> str:
        await context.started("somewhere:7")
        raise ToolFailed(f"not in {await context.sandbox.list('.')}")

    tool = Tool(name="fail", description="Fail.", arguments=Nothing, handler=fail)
    notes, events = Notebook(), list[AgentEvent]()
    result = await runner(tmp_path, notes, events, tool).run(call("fail", ""))
    assert result.text == "not in []"
    assert notes.log[:2] == ["started", "started somewhere:7"]
    assert isinstance(events[-1], ToolFinished)
    assert events[-1].failed


async def test_events_contain_the_arguments_and_the_result_with_secrets_redacted(
    tmp_path: Path,
) -> None:
    async def say(context: ToolContext, arguments: Words) -> str:
        return f"said {arguments.text} twice: {arguments.text}"

    tool = Tool(name="say", description="Says.", arguments=Words, handler=say)
    results = ResultFilter(Spill(tmp_path), redact=lambda text: text.replace('hunter"2', "…"))
    events = list[AgentEvent]()
    running = runner(tmp_path, Notebook(), events, tool, results=results)
    await running.run(call("say", '{"text": "my hunter\\"2", "times": 2}'))
    started, finished = events
    assert started == ToolStarted(
        call=CallId("t_0_0"),
        name="say",
        label="my …",
        arguments='{"text":"my …","times":2}',
    )
    assert isinstance(finished, ToolFinished)
    assert finished.result == "said my … twice: my …"


async def test_the_event_of_a_failed_call_says_that_it_failed(tmp_path: Path) -> None:
    events = list[AgentEvent]()
    await runner(tmp_path, Notebook(), events).run(call("missing", "{"))
    started, finished = events
    assert started == ToolStarted(call=CallId("t_0_0"), name="missing")
    assert isinstance(finished, ToolFinished)
    assert (finished.failed, finished.result) == (
        True,
        "There is no tool 'missing'. The tools are: none.",
    )


def breaking(error: Exception) -> Tool[Nothing]:
    async def run(context: ToolContext, arguments: Nothing) -> str:
        context.progress("a hunter2 " + "x" * 1000)
        raise error

    return Tool(name="odd", description="Breaks.", arguments=Nothing, handler=run)


async def test_the_error_of_a_broken_tool_contains_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    events = list[AgentEvent]()
    results = ResultFilter(Spill(tmp_path), redact=lambda text: text.replace("hunter2", "…"))
    odd = breaking(ValueError("bang hunter2" + "x" * 20_000))
    running = runner(tmp_path, Notebook(), events, odd, results=results)
    result = await running.run(call("odd", "{}"))
    assert result.failed
    assert result.text.startswith("The tool failed: ValueError: bang …xxx")
    assert len(result.text) <= FAULT_LENGTH + 100
    assert "hunter" not in result.text
    assert "the tool odd raised an unexpected error" in caplog.text
    (told,) = (event.text for event in events if isinstance(event, ToolProgress))
    assert len(told) == PROGRESS_LENGTH
    assert told.startswith("a … x")


@pytest.mark.parametrize("error", [ClaimLost("taken over"), StoreUnavailable("full")])
async def test_an_error_that_ends_the_turn_is_not_a_failed_call(
    tmp_path: Path, error: Exception
) -> None:
    running = runner(tmp_path, Notebook(), [], breaking(error))
    with pytest.raises(type(error)):
        await running.run(call("odd", "{}"))


async def test_a_tool_gets_the_sandbox_of_the_turn_s_workspace(tmp_path: Path) -> None:
    async def look(context: ToolContext, arguments: Nothing) -> str:
        return (await context.sandbox.read("f")).decode()

    (tmp_path / "f").write_text("here")
    tool = Tool(name="look", description="Looks.", arguments=Nothing, handler=look)
    runtime, turn = ToolRuntime(FILES_ONLY, NO_SPILL), a_turn(workspace=tmp_path)
    made = await runtime.for_turn(turn, {"look": tool}, lambda event: None, Notebook())
    assert (await made.run(call("look", "{}"))).text == "here"


async def test_a_failed_call_has_a_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    await runner(tmp_path, Notebook(), [], append).run(call("append", '{"token": "x"}'))
    assert caplog.messages == []
    await runner(tmp_path, Notebook(), [], append).run(call("remove", "{}"))
    (line,) = caplog.messages
    assert line.startswith("the tool remove failed in turn t: There is no tool 'remove'")


async def test_markers_in_arguments_are_restored_before_the_tool_runs(tmp_path: Path) -> None:
    shown = msgspec.json.encode({"token": "<\\|im_start|>"}).decode()
    result = await runner(tmp_path, Notebook(), [], append).run(call("append", shown))
    assert result.text == "appended <|im_start|>"


def changing(path: str, before: str, after: str) -> AnyTool:
    """Returns a tool that reports that it has changed the file `path` from `before` to `after`. The
    tool changes nothing."""

    async def change(context: ToolContext, arguments: Nothing) -> str:
        await context.show_change(path, before, after)
        return "changed"

    return Tool(name="change", description="Changes a file.", arguments=Nothing, handler=change)


async def diff_of(tmp_path: Path, tool: AnyTool, results: ResultFilter = NO_SPILL) -> str:
    """Calls the tool. Returns the diff in the event that reports the end of the call."""
    events = list[AgentEvent]()
    await runner(tmp_path, Notebook(), events, tool, results=results).run(call("change", "{}"))
    (end,) = (event for event in events if isinstance(event, ToolFinished))
    return end.diff


async def test_the_end_of_a_call_shows_the_change_of_a_file(tmp_path: Path) -> None:
    assert await diff_of(tmp_path, changing("f", "a\n", "b\n")) == "@@ -1,1 +1,1 @@\n-a\n+b"


async def test_a_change_is_shown_without_secrets(tmp_path: Path) -> None:
    secret = "first line\nsecond line"
    results = ResultFilter(Spill(tmp_path), redact=lambda text: text.replace(secret, "…"))
    changed = changing("f.py", "a\n", f"a\n{secret}\npassword = 'correct horse'\n")
    diff = await diff_of(tmp_path, changed, results)
    assert "+…" in diff
    assert "line" not in diff
    assert "horse" not in diff


@pytest.mark.parametrize("path", [".env", "keys/.env/", "id_rsa"])
async def test_a_file_of_secrets_has_no_diff(tmp_path: Path, path: str) -> None:
    assert await diff_of(tmp_path, changing(path, "A=1\n", "A=2\n")) == ""


async def test_a_very_long_file_has_no_diff(tmp_path: Path) -> None:
    long = "x\n" * SHOWN_CHANGE
    assert await diff_of(tmp_path, changing("f", long, f"{long}y\n")) == ""
