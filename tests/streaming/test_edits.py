"""The pace of previews."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.streaming.edits import Edit, EditPlan, Nothing, Place, Wait, partial
from hermes.streaming.policy import StreamingPolicy

POLICY = StreamingPolicy()
LONG = "a sentence that is longer than the threshold"


def plan(policy: StreamingPolicy = POLICY, limit: int = 4096) -> EditPlan:
    return EditPlan(policy, limit)


def standing(text: str, at: float = 0.0) -> EditPlan:
    """A plan whose message says `text` since `at`."""
    made = plan()
    made.shown(at, text)
    return made


def test_nothing_is_placed_before_four_visible_characters() -> None:
    assert plan().wants(0, "", final=False) == Nothing()
    assert plan().wants(0, "a b c", final=False) == Nothing()
    assert plan().wants(0, "Hello wor", final=False) == Place(text="Hello …")


def test_the_placeholder_is_placed_at_once() -> None:
    made = plan(StreamingPolicy(first="placeholder"))
    assert made.wants(0, "", final=False) == Place(text="…")
    made.shown(0, "…")
    assert made.wants(1, LONG, final=False) == Edit(text=f"{LONG} ▉")


def test_enough_new_text_is_shown_after_the_interval() -> None:
    made = standing("a …")
    assert made.wants(0.5, LONG, final=False) == Wait(until=0.8)
    assert made.wants(0.8, LONG, final=False) == Edit(text=f"{LONG} ▉")


def test_a_little_new_text_is_shown_after_three_intervals() -> None:
    made = standing("Hello ▉")
    wish = made.wants(1, "Hello you", final=False)
    assert isinstance(wish, Wait)
    assert wish.until == pytest.approx(2.4)
    assert made.wants(wish.until, "Hello you", final=False) == Edit(text="Hello you ▉")


def test_a_call_without_an_answer_counts_for_the_interval() -> None:
    made = plan()
    assert made.wants(10, "Hello wor", final=False) == Place(text="Hello …")
    assert made.wants(10.1, "Hello wor", final=False) == Wait(until=10.8)


def test_the_same_text_is_never_sent_again() -> None:
    made = standing("Hello ▉")
    assert made.wants(9, "Hello", final=False) == Nothing()
    assert made.wants(9, "Hello \n", final=False) == Nothing()
    made.shown(9, "Hello")
    assert made.wants(18, "Hello", final=True) == Nothing()


def test_the_final_text_has_no_cursor_and_keeps_the_interval() -> None:
    made = standing("Hello ▉")
    assert made.wants(0.1, "Hello", final=True) == Wait(until=0.8)
    assert made.wants(0.8, "Hello", final=True) == Edit(text="Hello")


def test_a_short_final_text_is_placed() -> None:
    assert plan().wants(0, "Ok", final=True) == Place(text="Ok")
    assert plan().wants(0, " ", final=True) == Nothing()


def test_text_that_is_said_anew_is_shown_after_the_interval() -> None:
    made = standing(f"{LONG} ▉")
    assert made.wants(0.8, "Other", final=False) == Edit(text="Other ▉")


def test_a_discard_leaves_the_preview_until_there_are_new_words() -> None:
    assert standing("Hello ▉").wants(9, "", final=False) == Nothing()


def test_a_preview_shows_the_first_part_that_fits() -> None:
    made = plan(limit=20)
    made.shown(0, "a …")
    assert made.wants(3, LONG, final=False) == Edit(text="a sentence that is ▉")
    made.shown(3, "a sentence that is ▉")
    assert made.wants(9, LONG + " and grows", final=False) == Nothing()


def test_the_limit_is_counted_as_the_platform_counts() -> None:
    made = EditPlan(POLICY, 10, measure=lambda text: len(text.encode("utf-16-le")) // 2)
    made.shown(0, "…")
    assert made.wants(3, "😀" * 9, final=False) == Edit(text="😀" * 4 + " ▉")


def test_a_freeze_suspends_every_call_until_it_is_over() -> None:
    made = standing("Hello ▉")
    made.frozen(30)
    made.frozen(20)
    assert made.wants(9, LONG, final=False) == Wait(until=30)
    assert made.wants(9, LONG, final=True) == Wait(until=30)
    assert made.wants(30, LONG, final=True) == Edit(text=LONG)


steps = st.lists(
    st.tuples(
        st.floats(0, 2),
        st.text(alphabet="ab \n", max_size=12),
        st.sampled_from(("taken", "lost", "frozen", "anew")),
    ),
    max_size=40,
)
policies = st.sampled_from((POLICY, StreamingPolicy(first="placeholder")))


@given(steps, policies, st.integers(10, 60))
def test_two_calls_are_never_closer_than_the_interval_and_the_final_text_is_shown(
    steps: list[tuple[float, str, str]], policy: StreamingPolicy, limit: int
) -> None:
    made, now, text, message = EditPlan(policy, limit), 0.0, "", ""
    calls: list[float] = []
    for pause, more, fate in steps:
        now += pause
        text = more if fate == "anew" else text + more
        wish = made.wants(now, text, final=False)
        if isinstance(wish, Place | Edit):
            calls.append(now)
            assert len(wish.text) <= limit
            assert isinstance(wish, Place) == (message == "")
            assert wish.text != message
            if fate == "frozen":
                made.frozen(now + 5)
            elif fate != "lost":
                message = wish.text
                made.shown(now, message)
    wish = made.wants(now, text, final=True)
    if isinstance(wish, Wait):
        now = wish.until
        wish = made.wants(now, text, final=True)
    if isinstance(wish, Place | Edit):
        calls.append(now)
        message = wish.text
        made.shown(now, message)
    if text.strip():
        assert message == text.rstrip()[:limit].rstrip()
    assert made.wants(now + 60, text, final=True) == Nothing()
    assert all(later >= one + policy.edit_interval for one, later in pairwise(calls))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("The answer is 42", "The answer is …"),
        ("Hello", "…"),
        ("Hello …", "…"),
        ("Hello you …", "Hello …"),
        ("", "…"),
        ("…", "… …"),
        ("漢" * 30, "漢" * 18 + " …"),
    ],
)
def test_a_partial_text_lacks_its_last_word(text: str, first: str) -> None:
    assert partial(text) == first


@given(st.text(min_size=1) | st.text(alphabet="a …\n", min_size=1))
def test_a_partial_text_is_never_the_complete_one(text: str) -> None:
    first = partial(text)
    kept = first.rstrip(" …")
    assert first != text
    assert text.startswith(kept)
    assert len(kept) < len(text)
