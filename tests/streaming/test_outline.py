"""An answer that is collected piece by piece is equal to the answer that is computed from all
events."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hermes.streaming.fold import EventFold, answer
from hermes.streaming.outline import AnswerJson, AnswerOutline
from hermes.types.events import (
    AgentEvent,
    Notice,
    ReasoningDelta,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    TurnFinished,
    UsageReported,
)

SUSPENDED = TurnFinished(outcome="suspended")
texts = st.sampled_from(["", " ", "\n", "a", 'b "c"', "\u00fc\U0001d11e", "\\", "\x00"])
events = st.lists(
    st.one_of(
        st.builds(TextDelta, text=texts),
        st.builds(TextDelta, text=texts),
        st.builds(ReasoningDelta, text=texts),
        st.builds(Notice, text=texts),
        st.just(SegmentEnded()),
        st.just(SegmentEnded()),
        st.builds(SegmentDiscarded, from_seq=st.integers(1, 30)),
        st.just(SUSPENDED),
        st.just(UsageReported(prompt_tokens=3, completion_tokens=2)),
    ),
    max_size=25,
)


@given(events)
def test_the_outline_has_the_same_answer_as_the_view(emitted: list[AgentEvent]) -> None:
    numbered = list(enumerate([*emitted, TurnFinished(outcome="completed")], 1))
    fold, outline = EventFold(), AnswerOutline()
    for seq, event in numbered:
        fold.feed(seq, event)
        outline.feed(seq, event)
    text = AnswerJson(outline.segments())
    said = b"".join(text.feed(seq, event) for seq, event in numbered)
    assert msgspec.json.decode(b'"' + said + b'"') == answer(fold.view())
    assert outline.usage == fold.view().usage
