"""The live screen shows a turn while it runs."""

import os
from io import StringIO

import pyte
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.control.context_use import ContextPart, ContextUse
from hermes.entry.terminal.live_output import LiveOutput
from hermes.entry.terminal.live_screen import IDLE, REDRAW_SECONDS, LiveScreen
from hermes.streaming.stdout import CUT
from hermes.types.events import (
    AgentEvent,
    ContextCompacted,
    Notice,
    QuestionAsked,
    ReasoningDelta,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    UsageReported,
)
from hermes.types.identity import CallId

ONE = CallId("t_0_0")
READ = ToolStarted(call=ONE, name="read_file", label="todo.txt")
READ_DONE = ToolFinished(call=ONE, name="read_file", seconds=0.12)
DONE = TurnFinished(outcome="completed")
USE = ContextUse(model="fake", window=128_000, parts=(ContextPart(name="all", tokens=25_600),))
PARTS = (
    "word ", "**bold** ", "\n", "\n\n", "- item\n", "1. one\n", "> quote\n", "# title\n", "`x` ",
    "```py\nx = 1\n", "```\n", "| a | b |\n|---|---|\n", "| 1 | 2 |\n", "文字 🙂 ", "a-long-" * 9,
)  # fmt: skip
parts = st.lists(st.sampled_from(PARTS), max_size=20)


class Watched:
    """A `LiveScreen` with an emulated terminal and a clock that the test sets."""

    def __init__(self, columns: int = 40, rows: int = 12) -> None:
        self.now = 0.0
        self.out = StringIO()
        size = os.terminal_size((columns, rows))
        self.output = LiveOutput(self.out, color=False, size=lambda: size)
        self.screen = LiveScreen(self.output, clock=lambda: self.now)
        self._terminal = pyte.Screen(columns, 150)

    def show(self, *events: AgentEvent) -> None:
        for event in events:
            self.screen.show(event)
            if not isinstance(event, TurnFinished):
                self.screen.draw()
            self.now += 1.0

    @property
    def lines(self) -> list[str]:
        self._terminal.reset()
        pyte.Stream(self._terminal).feed(self.out.getvalue().replace("\n", "\r\n"))
        text = "\n".join(line.rstrip() for line in self._terminal.display).rstrip()
        return text.split("\n")


def shown(*events: AgentEvent) -> list[str]:
    watched = Watched()
    watched.show(*events)
    return watched.lines


def says(text: str) -> TextDelta:
    return TextDelta(text=text)


def test_words_are_shown_as_they_arrive() -> None:
    watched = Watched()
    watched.show(says("Hel"))
    assert watched.lines == ["Hel"]
    watched.show(says("lo **you"))
    assert watched.lines == ["Hello **you"]
    watched.show(says("**.\n\nNext"))
    assert watched.lines == ["Hello you.", "", "Next"]


@settings(max_examples=50, deadline=None)
@given(parts)
def test_the_final_screen_equals_one_rendering_of_the_whole_answer(bits: list[str]) -> None:
    live, once = Watched(), Watched()
    live.show(*map(says, bits), DONE)
    once.show(says("".join(bits)), DONE)
    once_taken = once.lines[-1].replace("1.0 s", f"{len(bits)}.0 s")
    assert live.lines == [*once.lines[:-1], once_taken]


def test_a_tool_has_a_line_with_its_duration() -> None:
    failed = ToolFinished(call=ONE, name="read_file", seconds=2, failed=True)
    events = (says("Let me see."), SegmentEnded(), READ, READ_DONE, READ, failed, says("Done."))
    assert shown(*events) == [
        "Let me see.",
        "",
        "· read_file todo.txt (0.1 s)",
        "✗ read_file todo.txt (failed, 2.0 s)",
        "",
        "Done.",
    ]


def test_the_line_of_a_tool_has_its_arguments_and_its_result() -> None:
    read = replace(READ, arguments='{"path":"todo.txt","offset":2}')
    done = replace(READ_DONE, result="milk\nbread")
    failed = replace(done, failed=True, result="gone")
    watched = Watched(columns=60)
    watched.show(read, done, read, failed)
    assert watched.lines[:2] == [
        "· read_file todo.txt offset=2 (0.1 s): milk bread",
        "✗ read_file todo.txt offset=2 (failed, 0.1 s): gone",
    ]


def test_a_change_is_shown_below_its_tool_and_cut_to_the_width() -> None:
    patched = replace(READ_DONE, name="patch", diff=f"@@ -1,1 +1,1 @@\n-\x1b[2Ja\n+{'b' * 60}")
    watched = Watched()
    started = replace(READ, name="patch", arguments='{"path":"todo.txt","old":"a","new":"b"}')
    watched.show(started, patched, DONE)
    assert watched.lines[:4] == [
        "· patch todo.txt (0.1 s)",
        "  @@ -1,1 +1,1 @@",
        "  -a",
        "  +" + "b" * 35 + "…",
    ]


def test_added_and_removed_lines_have_their_colors() -> None:
    out = StringIO()
    size = os.terminal_size((40, 12))
    screen = LiveScreen(LiveOutput(out, color=True, size=lambda: size))
    screen.show(replace(READ_DONE, diff="-old\n+new"))
    screen.draw()
    assert "\x1b[31m  -old" in out.getvalue()
    assert "\x1b[32m  +new" in out.getvalue()


def test_a_call_that_waits_for_the_person_is_not_shown_as_unfinished() -> None:
    assert shown(READ, TurnFinished(outcome="suspended")) == [""]
    assert shown(READ, TurnFinished(outcome="stopped"))[0] == "✗ read_file todo.txt (not finished)"


def test_a_running_tool_is_in_the_last_line() -> None:
    *before, last = shown(says("Let me see."), SegmentEnded(), READ)
    assert before == ["Let me see.", ""]
    assert last[2:] == "read_file todo.txt"


def test_reasoning_is_shown_only_as_activity() -> None:
    assert [line[2:] for line in shown(ReasoningDelta(text="secret"))] == ["thinking"]


def test_a_long_label_stays_in_one_line() -> None:
    (line,) = shown(ToolStarted(call=ONE, name="terminal", label="word " * 50))
    assert len(line) <= 39


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (Notice(text="the model requests a pause of 12 s"), "· the model requests a pause of 12 s"),
        (ContextCompacted(messages=9), "· 9 earlier messages were summarised"),
        (Notice(text="\x1b[2Jboo"), "· boo"),
    ],
)
def test_notices_have_lines_of_their_own(event: AgentEvent, line: str) -> None:
    assert shown(event)[0] == line


@pytest.mark.parametrize(
    ("end", "lines"),
    [
        (TurnFinished(outcome="completed"), []),
        (TurnFinished(outcome="stopped", text="by you"), ["Stopped."]),
        (TurnFinished(outcome="stopped", text="nobody read"), ["Stopped: nobody read."]),
        (TurnFinished(outcome="failed", text="The key is wrong."), ["The key is wrong."]),
        (
            TurnFinished(outcome="completed", finish_reason="length"),
            [
                "(The answer was cut off at the model's",
                "limit of output tokens. Say \"continue\"",
                "to get the rest.)",
            ],
        ),
    ],
)  # fmt: skip
def test_the_last_line_says_how_the_turn_ended(end: TurnFinished, lines: list[str]) -> None:
    used = UsageReported(prompt_tokens=1200, completion_tokens=5)
    assert shown(says("So"), used, used, end) == [
        "So",
        "",
        *lines,
        "· 3.0 s · 2,400 tokens in · 10 out",
    ]


def test_a_question_has_its_choices_numbered() -> None:
    asked = QuestionAsked(
        id="q", call=ONE, kind="question", prompt="Which?", choices=("red", "blue")
    )
    assert shown(asked, TurnFinished(outcome="suspended")) == [
        "? Which?",
        "  1. red",
        "  2. blue",
        "  a number picks one, or answer in your",
        "own words; /stop drops the question",
    ]
    free = QuestionAsked(id="q", call=ONE, kind="question", prompt="Who?")
    assert shown(free, TurnFinished(outcome="suspended")) == [
        "? Who?",
        "  /stop drops the question",
    ]


def test_every_line_of_an_approval_begins_with_a_bar() -> None:
    command = "rm -rf 'a\n1. Once   2. No\nReason: none' " + "long " * 12
    approval = QuestionAsked(
        id="1234abcd5678",
        call=ONE,
        kind="approval",
        prompt=f"I am about to run a command:\n\n```\n{command}\n```\n\nReason: deletes a.",
        choices=("Once", "This session", "Always"),
    )
    lines = shown(approval, TurnFinished(outcome="suspended"))
    assert all(line.startswith("┃") for line in lines)
    assert "┃   1. Once   2. No" in lines
    assert "┃ 1. Once   2. This session   3. Always" in lines
    assert lines[-1] == "┃ Approval abcd5678; /stop cancels it."


def test_a_discarded_answer_is_removed_if_no_line_of_it_is_permanent() -> None:
    discarded = SegmentDiscarded(from_seq=1)
    assert shown(says("Hel"), discarded, says("Hi"), DONE)[0] == "Hi"
    lines = shown(says("One.\n\nTwo.\n\nThr"), discarded, says("Hi"), DONE)
    assert lines[:7] == ["One.", "", "Two.", "", "Thr", "", CUT[:39].rstrip()]


def test_the_rate_of_drawing_is_limited() -> None:
    watched = Watched()
    watched.screen.show(says("one"))
    assert watched.screen.draw() == IDLE
    watched.screen.show(says(" two"))
    watched.now += REDRAW_SECONDS / 2
    assert watched.screen.draw() == pytest.approx(REDRAW_SECONDS / 2)
    assert watched.lines == ["one"]
    watched.now += REDRAW_SECONDS
    watched.screen.draw()
    assert watched.lines == ["one two"]


def test_slow_drawing_is_done_less_often() -> None:
    watched = Watched()
    times = iter(range(100))
    slow = LiveScreen(watched.screen._output, clock=lambda: next(times) * REDRAW_SECONDS)
    slow.show(says("one"))
    assert slow.draw() == IDLE
    assert slow.draw() == pytest.approx(2 * REDRAW_SECONDS)


def test_the_status_line_is_below_the_answer_and_disappears_at_its_end() -> None:
    watched = Watched()
    watched.output.context = USE
    watched.show(says("Hel"))
    assert watched.lines == ["Hel", "", "fake · context 20% of 128k · Esc stops"]
    watched.show(SegmentEnded(), READ)
    assert watched.lines[:2] == ["Hel", ""]
    assert watched.lines[2][2:] == "read_file todo.txt"
    assert watched.lines[3] == "fake · context 20% of 128k · Esc stops"
    watched.show(READ_DONE, DONE)
    assert not any("context" in line for line in watched.lines)


def test_the_whole_typed_text_is_visible() -> None:
    watched = Watched()
    watched.output.context = USE
    watched.output.typed = "a long line that is wider than the screen\nand\x1b[2J one more"
    watched.show(ReasoningDelta(text="hm"))
    assert watched.lines[2:] == [
        "› a long line that is wider than the",
        "screen",
        "and one more",
    ]


def test_a_queued_question_is_shown_like_a_typed_question() -> None:
    watched = Watched()
    watched.screen.show_question("first\nsecond\x1b[2J")
    watched.show(says("Hi"), DONE)
    assert watched.lines[:4] == ["", "› first", "  second", "Hi"]


def test_a_reply_of_the_gateway_is_rendered_as_markdown() -> None:
    watched = Watched()
    watched.screen.show_reply("**Idle.**\n/stop: end it")
    assert watched.lines == ["Idle.", "/stop: end it"]


def test_text_of_the_model_cannot_control_the_terminal() -> None:
    watched = Watched()
    watched.show(says("a\x1b]0;title\x07b\x1b[2J"), DONE)
    assert watched.lines[0] == "ab"
