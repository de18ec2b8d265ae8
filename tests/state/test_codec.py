"""Stored events, read from any event number on, are equal to the emitted events."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hermes.state.codec import Recorded, decode_recorded, encode, record
from hermes.testing.rows import merged
from hermes.types.events import AgentEvent, Notice, ReasoningDelta, SegmentEnded, TextDelta

words = st.text(max_size=6)
events = st.lists(
    st.one_of(
        st.builds(TextDelta, text=words),
        st.builds(TextDelta, text=words),
        st.builds(ReasoningDelta, text=words),
        st.builds(Notice, text=words),
        st.just(SegmentEnded()),
    ),
    max_size=20,
)


@given(events, st.integers(1, 2_000_001))
def test_a_reader_gets_the_missing_part_from_any_number(
    emitted: list[AgentEvent], first: int
) -> None:
    kept = decode_recorded(encode(record(first, emitted)))
    for seen in range(-2, len(emitted) + 2):
        pieces = [one.after(first - 1 + seen) for one in kept]
        lacking = [piece for piece in pieces if piece is not None]
        assert merged(lacking) == merged(emitted[max(seen, 0) :])


@given(events, st.integers(1, 1000))
def test_numbers_rise_up_to_the_number_of_the_last_event(
    emitted: list[AgentEvent], first: int
) -> None:
    numbers = [one.seq for one in record(first, emitted)]
    assert numbers == sorted(set(numbers))
    assert not emitted or numbers[-1] == first + len(emitted) - 1


@given(st.lists(words, min_size=1, max_size=9))
def test_consecutive_texts_are_stored_as_one_text(texts: list[str]) -> None:
    (kept,) = record(1, [TextDelta(text=text) for text in texts])
    assert kept == Recorded(
        seq=len(texts),
        event=TextDelta(text="".join(texts)),
        lengths=tuple(map(len, texts)),
    )
    assert msgspec.json.decode(encode([kept]), type=list[Recorded]) == [kept]
