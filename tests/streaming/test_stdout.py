"""A turn is rendered for stdout."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.streaming.stdout import (
    CUT,
    LABEL_WIDTH,
    RESULT_WIDTH,
    JsonLines,
    Session,
    SplitStream,
    StdoutStream,
)
from hermes.types.events import (
    AgentEvent,
    Notice,
    QuestionAsked,
    ReasoningDelta,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
)
from hermes.types.identity import CallId

ONE, TWO = CallId("t_0_0"), CallId("t_0_1")
DONE = TurnFinished(outcome="completed")
READ = ToolStarted(call=ONE, name="read_file", label="notes.txt")
READ_DONE = ToolFinished(call=ONE, name="read_file", seconds=0.12)


def written(*events: AgentEvent, color: bool = False, tools: bool = True) -> str:
    stream = StdoutStream(color=color, tools=tools)
    return "".join(map(stream.feed, events))


def says(text: str) -> TextDelta:
    return TextDelta(text=text)


def test_text_is_written_token_by_token() -> None:
    stream = StdoutStream(color=False)
    assert [stream.feed(e) for e in (says("Hel"), says("lo"), DONE)] == ["Hel", "lo", "\n"]


def test_each_tool_call_has_one_line() -> None:
    assert written(says("Let me see."), SegmentEnded(), READ, READ_DONE, says("Done"), DONE) == (
        "Let me see.\n· read_file notes.txt (0.1 s)\n\nDone\n"
    )


PATCH = ToolStarted(call=ONE, name="patch", label="f")
PATCHED = ToolFinished(
    call=ONE,
    name="patch",
    result="Replaced once in 'f'.\n@@ -1 +1 @@",
    diff="@@ -1,2 +1,2 @@\n +x\r\n-a\x1b[2J\n+\tb",
)


def test_a_change_is_shown_below_the_line_of_its_tool() -> None:
    assert written(PATCH, PATCHED, says("Done"), DONE) == (
        "· patch f (0.0 s): Replaced once in 'f'.\n  @@ -1,2 +1,2 @@\n   +x\n  -a\n  +   b\nDone\n"
    )


def test_the_change_of_a_second_tool_is_shown_after_its_line() -> None:
    second = replace(PATCHED, call=TWO, name="write_file", diff="+two")
    shown = written(PATCH, replace(PATCH, call=TWO), second, replace(PATCHED, diff="+one"), DONE)
    assert [line.strip()[:9] for line in shown.splitlines()] == [
        "· patch f", "+one", "· patch f", "+two",
    ]  # fmt: skip


def test_the_lines_of_a_change_have_colors_only_if_colors_are_on() -> None:
    shown = written(PATCH, PATCHED, DONE, color=True)
    assert "\x1b[31m  -a\x1b[0m\n\x1b[32m  +   b\x1b[0m\n" in shown
    assert "\x1b[2m   +x\x1b[0m\n" in shown
    assert "\x1b" not in written(PATCH, PATCHED, DONE)


def test_a_change_is_not_part_of_the_answer() -> None:
    stream = SplitStream()
    assert stream.feed(PATCHED).aside.endswith("\n  -a\n  +   b\n")
    assert stream.feed(PATCHED).answer == ""


def test_a_running_tool_is_shown_at_once() -> None:
    assert written(READ) == "· read_file notes.txt"


def test_concurrent_tools_have_one_line_each() -> None:
    make = ToolStarted(call=TWO, name="terminal", label="make\n all")
    make_done = ToolFinished(call=TWO, name="terminal", seconds=2, failed=True)
    assert written(READ, make, make_done, READ_DONE, DONE) == (
        "· read_file notes.txt (0.1 s)\n· terminal make all (failed, 2.0 s)\n"
    )
    assert written(READ, make, READ_DONE, make_done, DONE) == (
        "· read_file notes.txt (0.1 s)\n· terminal make all (failed, 2.0 s)\n"
    )


@pytest.mark.parametrize(
    ("label", "arguments", "line"),
    [
        ("a.txt", '{"path":"a.txt","offset":2}', "x a.txt offset=2"),
        ("make", '{"command":"make\\n all","timeout":5.5,"background":true}',
         "x make timeout=5.5 background=true"),
        ("https://a", '{"urls":["https://a","https://b"]}', "x https://a"),
        ("w" * 79 + "…", '{"text":"' + "w" * 200 + '","n":1}', "x " + "w" * 79 + "… n=1"),
        ("a", '{"path":"a","content":"' + "y" * 200 + '"}', "x a content=" + "y" * 39 + "…"),
        ("", '{"limit":3,"of":{"a":[1]}}', 'x limit=3 of={"a":[1]}'),
        ("", '{"text":""}', "x text="),
        ("a", '{"path":"a","text":"\\u001b[2J"}', "x a text="),
        ("a", "no json", "x a"),
    ],
)  # fmt: skip
def test_the_arguments_of_a_tool_are_in_its_line(label: str, arguments: str, line: str) -> None:
    started = ToolStarted(call=ONE, name="x", label=label, arguments=arguments)
    assert written(started) == f"· {line}"


def test_a_line_of_many_arguments_is_cut() -> None:
    arguments = json.dumps({f"name{number}": "value" for number in range(50)})
    line = written(ToolStarted(call=ONE, name="x", arguments=arguments))
    assert len(line) == len("· ") + LABEL_WIDTH
    assert line.endswith("…")


def test_the_result_of_a_tool_is_at_the_end_of_its_line() -> None:
    done = replace(READ_DONE, result="one\n\x1b[31mtwo " + "z" * 100)
    shown = "one two " + "z" * (RESULT_WIDTH - 9) + "…"
    assert written(READ, done) == f"· read_file notes.txt (0.1 s): {shown}\n"
    assert split(READ, done) == ("", f"· read_file notes.txt (0.1 s): {shown}\n")
    failed = replace(READ_DONE, failed=True, result="No such file.")
    assert written(READ, failed) == "· read_file notes.txt (failed, 0.1 s): No such file.\n"


def test_the_lines_of_tools_can_be_left_out() -> None:
    assert written(says("A"), SegmentEnded(), READ, READ_DONE, says("B"), DONE, tools=False) == (
        "A\n\nB\n"
    )


def test_a_discarded_segment_is_reported_on_its_own_line() -> None:
    assert written(says("Hel"), SegmentDiscarded(from_seq=1), says("Hi"), DONE) == (
        f"Hel\n{CUT}\nHi\n"
    )


def test_notices_are_in_brackets() -> None:
    assert written(Notice(text="queued"), says("Hi"), DONE) == "[queued]\nHi\n"


def test_reasoning_is_not_written() -> None:
    assert written(ReasoningDelta(text="hm"), says("Hi"), DONE) == "Hi\n"


def test_a_question_is_written_with_a_hint_how_to_answer() -> None:
    question = QuestionAsked(id="q1", call=ONE, kind="question", prompt="Which?", choices=("a",))
    suspended = TurnFinished(outcome="suspended")
    assert written(says("Hm."), SegmentEnded(), question, suspended) == (
        "Hm.\nWhich?\n1. a\nReply with your answer (question q1).\n"
    )


def test_an_approval_has_its_choices_only_where_it_can_be_answered() -> None:
    asked = QuestionAsked(id="q1", call=ONE, kind="approval", prompt="Run it?", choices=("Once",))
    assert written(says("Hm."), SegmentEnded(), asked).startswith("Hm.\n┃ Run it?\n┃\n┃ 1. Once")
    for stream in (StdoutStream(color=False, answers=False), SplitStream(answers=False)):
        told = stream.feed(asked)
        assert (told if isinstance(told, str) else told.aside) == "┃ Run it?\n"


def test_a_failure_says_why() -> None:
    assert written(says("Hel"), TurnFinished(outcome="failed", text="No key.")) == "Hel\nNo key.\n"


def test_a_notice_outside_the_answer_says_that_it_was_cut_off() -> None:
    events = (says("Once"), SegmentEnded(), replace(DONE, finish_reason="length"))
    assert written(*events).startswith("Once\n(The answer was cut off at")
    answer, aside = split(*events)
    assert answer == "Once\n"
    assert aside.startswith("(The answer was cut off at")


def test_colours_are_written_only_if_colors_are_on() -> None:
    events = (READ, READ_DONE, Notice(text="n"), says("Hi"), TurnFinished(outcome="stopped"))
    assert "\x1b[" in written(*events, color=True)
    assert "\x1b" not in written(*events)


def test_the_model_can_not_control_the_terminal() -> None:
    steered = written(says("a\x1b]52;c;x\x07b\x9b2J"), Notice(text="\x1b[2J"), DONE, color=False)
    assert not set(steered) & {"\x1b", "\x07", "\x9b"}


def test_indentation_is_kept_for_every_split_into_tokens() -> None:
    assert written(says("\n"), says("   "), says(" x = 1"), says("\n"), says(" y"), DONE) == (
        "    x = 1\n y\n"
    )


@given(st.lists(st.text(alphabet="ab \n", max_size=4)), st.booleans())
def test_the_output_ends_with_one_newline_or_is_empty(texts: list[str], tool: bool) -> None:
    tools: list[AgentEvent] = [READ, READ_DONE] if tool else []
    text = written(*map(says, texts), SegmentEnded(), *tools, DONE)
    assert text == "" or (text.endswith("\n") and not text.endswith("\n\n"))


def split(*events: AgentEvent) -> tuple[str, str]:
    stream = SplitStream()
    written = list(map(stream.feed, events))
    return "".join(one.answer for one in written), "".join(one.aside for one in written)


def test_the_answer_is_separated_from_other_output() -> None:
    events = (says("Let me see.\n"), SegmentEnded(), READ, READ_DONE, says("\nDone"), DONE)
    assert split(*events) == ("Let me see.\n\nDone\n", "· read_file notes.txt (0.1 s)\n")


def test_discarded_text_is_never_part_of_the_answer() -> None:
    assert split(says("Hel"), SegmentDiscarded(from_seq=1), says("Hi"), SegmentEnded(), DONE) == (
        "Hi\n",
        f"{CUT}\n",
    )


def test_a_call_that_waits_for_the_person_is_not_shown_as_unfinished() -> None:
    suspended = TurnFinished(outcome="suspended")
    assert "not finished" not in split(READ, suspended)[1]
    make = ToolStarted(call=TWO, name="terminal", label="make")
    assert "not finished" not in written(READ, make, suspended)


def test_a_tool_that_was_stopped_has_a_line() -> None:
    make = ToolStarted(call=TWO, name="terminal", label="make")
    stopped = TurnFinished(outcome="stopped")
    assert split(READ, stopped)[1] == "· read_file notes.txt (not finished)\n(stopped)\n"
    assert written(READ, make, stopped) == (
        "· read_file notes.txt\n· terminal make (not finished)\n(stopped)\n"
    )


def test_a_question_is_shown_once() -> None:
    asks = ToolStarted(call=ONE, name="clarify", label="Which?")
    question = QuestionAsked(id="q1", call=ONE, kind="question", prompt="Which?")
    suspended = TurnFinished(outcome="suspended")
    assert written(asks, question, suspended).count("Which?") == 1
    assert split(asks, question, suspended)[1].count("Which?") == 1


def test_json_begins_with_the_session() -> None:
    assert json.loads(JsonLines().feed(Session(name="a b"))) == {"type": "Session", "name": "a b"}


def test_json_lines_are_one_object_per_event() -> None:
    lines = JsonLines()
    read = replace(READ, arguments='{"path":"notes.txt"}')
    done = replace(READ_DONE, result="a note")
    events: tuple[AgentEvent, ...] = (says("a\nb"), read, done, says("\ud800"))
    text = "".join(map(lines.feed, events))
    assert [json.loads(line) for line in text.splitlines()] == [
        {"type": "TextDelta", "text": "a\nb"},
        {
            "type": "ToolStarted",
            "call": "t_0_0",
            "name": "read_file",
            "label": "notes.txt",
            "arguments": '{"path":"notes.txt"}',
        },
        {
            "type": "ToolFinished",
            "call": "t_0_0",
            "name": "read_file",
            "seconds": 0.12,
            "result": "a note",
        },
        {"type": "TextDelta", "text": "?"},
    ]
