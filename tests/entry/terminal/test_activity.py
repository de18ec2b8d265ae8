"""A line shows what the agent is doing."""

import pytest
from msgspec.structs import replace

from hermes.entry.terminal.activity import SPINNER, STALL, Activity, spent
from hermes.types.events import (
    AgentEvent,
    Notice,
    ReasoningDelta,
    SegmentEnded,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    UsageReported,
)
from hermes.types.identity import CallId

ONE, TWO = CallId("t_0_0"), CallId("t_0_1")
READ = ToolStarted(call=ONE, name="read_file", label="todo.txt")
RUN = ToolStarted(call=TWO, name="terminal", label="make\n  all")


def line(*events: AgentEvent, after: float = 0.5) -> str:
    """Returns the activity line that is shown `after` seconds after the last of the events."""
    status = Activity(100.0)
    for event in events:
        status.feed(event, 100.0)
    return status.line(100.0 + after)[2:]


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([], "thinking"),
        ([ReasoningDelta(text="hm")], "thinking"),
        ([READ], "read_file todo.txt"),
        ([replace(READ, arguments='{"offset":2}')], "read_file todo.txt offset=2"),
        ([READ, RUN], "read_file todo.txt, terminal make all"),
        ([RUN, ToolProgress(call=TWO, text="half\n done")], "terminal make all: half done"),
        ([READ, ToolFinished(call=ONE, name="read_file")], "thinking"),
        ([ToolProgress(call=TWO, text="of nothing")], "thinking"),
        ([Notice(text="the model requests a pause of 12 s")], "waiting"),
        ([TextDelta(text="Hi"), SegmentEnded()], "thinking"),
    ],
)
def test_the_line_names_the_current_activity(events: list[AgentEvent], wanted: str) -> None:
    assert line(*events) == wanted


def test_seconds_are_counted_from_the_start_of_the_current_task() -> None:
    assert line(READ, after=3.2) == "read_file todo.txt · 3 s"
    status = Activity(0.0)
    status.feed(ReasoningDelta(text="hm"), 5.0)
    assert status.line(7.0).endswith("thinking · 7 s")
    status.feed(Notice(text="a pause"), 7.0)
    assert status.line(9.0).endswith("waiting · 2 s")


def test_the_spinner_is_hidden_while_text_arrives() -> None:
    assert line(TextDelta(text="Hi"), after=STALL - 0.1) == ""
    assert line(TextDelta(text="Hi"), after=STALL + 1) == "waiting for the model · 2 s"


def test_the_spinner_changes_with_time() -> None:
    status = Activity(0.0)
    assert {status.line(tenth / 10 + 0.01)[0] for tenth in range(10)} == set(SPINNER)


def test_a_label_cannot_control_the_terminal() -> None:
    assert "\x1b" not in line(ToolStarted(call=ONE, name="read_file", label="\x1b[2J"))


def test_a_turn_ends_with_its_duration_and_cost() -> None:
    used = UsageReported(prompt_tokens=12_345, completion_tokens=67)
    assert spent(None, 1.24) == "1.2 s"
    assert spent(used, 2.0) == "2.0 s · 12,345 tokens in · 67 out"
    dear = UsageReported(prompt_tokens=9, completion_tokens=1, cached_tokens=8, cost=0.00312)
    assert spent(dear, 2.0) == "2.0 s · 9 tokens in (8 cached) · 1 out · $0.0031"
    assert spent(UsageReported(prompt_tokens=1, completion_tokens=1, cost=1.5), 0).endswith("$1.50")
