"""The state of a turn is computed from any sequence of its events."""

import time

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hermes.streaming.fold import EventFold, ToolLine, View, answer
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
    ToolProgress,
    ToolStarted,
    TurnFinished,
    UsageReported,
)
from hermes.types.identity import CallId

CALL = CallId("t_0_0")
QUESTION = QuestionAsked(id="q1", call=CALL, kind="question", prompt="Which one?")

texts = st.builds(TextDelta, text=st.text(max_size=8))
events: st.SearchStrategy[AgentEvent] = st.one_of(
    texts,
    st.builds(ReasoningDelta, text=st.text()),
    st.just(SegmentEnded()),
    st.builds(SegmentDiscarded, from_seq=st.integers(0, 30)),
    st.builds(ToolStarted, call=st.just(CALL), name=st.just("read_file"), label=st.text()),
    st.builds(ToolProgress, call=st.just(CALL), text=st.text()),
    st.builds(ToolFinished, call=st.just(CALL), name=st.just("read_file")),
    st.just(QUESTION),
    st.builds(ContextCompacted, messages=st.integers(0, 9)),
    st.builds(UsageReported, prompt_tokens=st.integers(0, 9), completion_tokens=st.integers(0, 9)),
    st.builds(Notice, text=st.text()),
    st.builds(
        TurnFinished, outcome=st.sampled_from(("completed", "suspended", "stopped", "failed"))
    ),
)


def folded(*happened: AgentEvent) -> View:
    fold = EventFold()
    for seq, event in enumerate(happened, 1):
        fold.feed(seq, event)
    return fold.view()


def says(text: str) -> TextDelta:
    return TextDelta(text=text)


def after(view: View, event: AgentEvent, seq: int = 0) -> View:
    fold = EventFold(view)
    fold.feed(seq, event)
    return fold.view()


def test_deltas_of_one_segment_are_joined() -> None:
    view = folded(says("Hel"), says("lo"))
    assert view.current == "Hello"
    assert view.segments == ()
    assert answer(view) == "Hello"


def test_segments_are_joined_by_a_blank_line() -> None:
    view = folded(says("One"), SegmentEnded(), says("Two"), SegmentEnded())
    assert view.segments == ("One", "Two")
    assert answer(view) == "One\n\nTwo"


def test_a_segment_without_visible_text_is_not_part_of_the_answer() -> None:
    view = folded(says("\n\n"), SegmentEnded(), says("Two"), SegmentEnded(), says(" "))
    assert view.segments == ("Two",)
    assert answer(view) == "Two"


def test_a_discard_drops_only_the_open_segment() -> None:
    view = folded(says("One"), SegmentEnded(), says("Tw"), SegmentDiscarded(from_seq=3), says("2"))
    assert answer(view) == "One\n\n2"


def test_a_discard_can_also_drop_a_segment_that_had_ended() -> None:
    view = folded(
        says("One"), SegmentEnded(), says("Two"), SegmentEnded(), SegmentDiscarded(from_seq=3)
    )
    assert answer(view) == "One"


def test_tools_are_in_the_order_in_which_they_started() -> None:
    other = CallId("t_0_1")
    view = folded(
        ToolStarted(call=CALL, name="read_file", label="notes.txt"),
        ToolStarted(call=other, name="terminal", label="make"),
        ToolProgress(call=other, text="half"),
        ToolFinished(call=CALL, name="read_file", seconds=0.1),
        ToolFinished(call=CallId("t_0_2"), name="unseen", failed=True),
        ToolProgress(call=CallId("t_0_3"), text="nobody knows it"),
    )
    assert view.tools == (
        ToolLine(call=CALL, name="read_file", label="notes.txt", seconds=0.1),
        ToolLine(call=other, name="terminal", label="make", progress="half"),
        ToolLine(call=CallId("t_0_2"), name="unseen", seconds=0.0, failed=True),
    )


def test_a_question_is_open_until_its_call_continues() -> None:
    suspended = TurnFinished(outcome="suspended")
    asked = folded(says("Hm."), SegmentEnded(), QUESTION, suspended)
    assert asked.questions == (QUESTION,)
    assert asked.outcome == suspended
    resumed = after(asked, ToolFinished(call=CALL, name="clarify"))
    assert resumed.questions == ()
    assert resumed.outcome is None


def test_text_after_a_suspension_is_a_segment_of_its_own() -> None:
    view = folded(says("Hm."), QUESTION, TurnFinished(outcome="suspended"), says("Fine."))
    assert answer(view) == "Hm.\n\nFine."
    assert view.outcome is None


def test_usage_is_the_total_of_all_model_calls() -> None:
    view = folded(
        UsageReported(prompt_tokens=10, completion_tokens=2),
        UsageReported(prompt_tokens=20, completion_tokens=3),
    )
    assert view.usage == UsageReported(prompt_tokens=30, completion_tokens=5)


def test_notices_reasoning_and_compaction_are_not_part_of_the_answer() -> None:
    view = folded(Notice(text="slow"), ReasoningDelta(text="hm"), ContextCompacted(messages=3))
    assert answer(view) == ""
    assert view.notices == (Notice(text="slow"),)


@given(st.lists(events))
def test_a_fold_can_start_from_the_view_of_another_fold(happened: list[AgentEvent]) -> None:
    # SegmentDiscarded is left out. A view has the texts of the earlier model calls (the segments),
    # but not the numbers of their events, so it can't discard an earlier segment.
    happened = [e for e in happened if not isinstance(e, SegmentDiscarded)]
    view = View()
    for seq, event in enumerate(happened, 1):
        view = after(view, event, seq)
    assert view == folded(*happened)


@given(st.lists(events), st.lists(events))
def test_reading_the_view_does_not_change_the_result(
    one: list[AgentEvent], two: list[AgentEvent]
) -> None:
    fold = EventFold()
    for seq, event in enumerate(one + two, 1):
        fold.feed(seq, event)
        fold.view()
    assert fold.view() == folded(*one, *two)


@given(st.lists(st.lists(st.tuples(st.text(max_size=5), st.booleans()), max_size=4), max_size=6))
def test_the_answer_is_the_concatenation_of_kept_segments(
    attempts: list[list[tuple[str, bool]]],
) -> None:
    happened: list[AgentEvent] = []
    kept = []
    for attempt in attempts:
        start = len(happened) + 1
        happened += [says(text) for text, _ in attempt]
        if attempt and attempt[-1][1]:
            happened.append(SegmentDiscarded(from_seq=start))
        else:
            happened.append(SegmentEnded())
            kept.append("".join(text for text, _ in attempt))
    assert answer(folded(*happened)) == "\n\n".join(text for text in kept if text.strip())


def test_a_view_can_be_encoded_and_decoded() -> None:
    view = folded(says("Hi"), QUESTION, TurnFinished(outcome="suspended"))
    assert msgspec.json.decode(msgspec.json.encode(view), type=View) == view


def test_a_long_stream_is_folded_in_linear_time() -> None:
    fold, delta = EventFold(), says("word ")
    started = time.perf_counter()
    for seq in range(200_000):
        fold.feed(seq, delta)
    assert len(answer(fold.view())) == 1_000_000
    assert time.perf_counter() - started < 5
