"""A preview is sent and edited at the right times."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.streaming.edits import (
    EditPlan,
    EditPreview,
    Nothing,
    PlacePreview,
    Wait,
    placeholder_text,
)
from hermes.streaming.parts import tree_of
from hermes.streaming.policy import StreamingPolicy
from hermes.text.markdown import print_markdown, print_plain
from hermes.text.slices import visible
from hermes.text.split import utf16_units
from hermes.types.nodes import Document

POLICY = StreamingPolicy()


def squeezed(text: str) -> str:
    return "".join(text.split())


LONG = "a sentence that is longer than the threshold"


def plan(policy: StreamingPolicy = POLICY, limit: int = 4096) -> EditPlan:
    return EditPlan(policy, limit, print_markdown, len)


def standing(text: str, at: float = 0.0) -> EditPlan:
    """Returns the plan of a preview whose message has shown `text` since the time `at`."""
    made = plan()
    made.shown(at, text)
    return made


def test_no_preview_is_sent_before_four_visible_characters() -> None:
    assert plan().wants(0, "") == Nothing()
    assert plan().wants(0, "a b c") == Nothing()
    assert plan().wants(0, "Hello wor") == PlacePreview(text="Hello …")


def test_the_placeholder_is_sent_at_once() -> None:
    made = plan(StreamingPolicy(first="placeholder"))
    assert made.wants(0, "") == PlacePreview(text="…")
    made.shown(0, "…")
    assert made.wants(1, LONG) == EditPreview(text=f"{LONG} ▉")


def test_much_new_text_is_shown_after_one_interval() -> None:
    made = standing("a …")
    assert made.wants(0.5, LONG) == Wait(until=0.8)
    assert made.wants(0.8, LONG) == EditPreview(text=f"{LONG} ▉")


def test_a_little_new_text_is_shown_after_three_intervals() -> None:
    made = standing("Hello ▉")
    wish = made.wants(1, "Hello you")
    assert isinstance(wish, Wait)
    assert wish.until == pytest.approx(2.4)
    assert made.wants(wish.until, "Hello you") == EditPreview(text="Hello you ▉")


def test_a_call_with_an_unknown_result_also_starts_the_interval() -> None:
    made = plan()
    assert made.wants(10, "Hello wor") == PlacePreview(text="Hello …")
    assert made.wants(10.1, "Hello wor") == Wait(until=10.8)


def test_the_same_text_is_never_sent_again() -> None:
    made = standing("Hello ▉")
    assert made.wants(9, "Hello") == Nothing()
    assert made.wants(9, "Hello \n") == Nothing()


def test_replaced_text_is_shown_after_the_interval() -> None:
    made = standing(f"{LONG} ▉")
    assert made.wants(0.8, "Other") == EditPreview(text="Other ▉")


def test_after_a_discard_the_preview_is_kept_until_there_is_new_text() -> None:
    assert standing("Hello ▉").wants(9, "") == Nothing()


def test_a_full_message_has_no_cursor_and_the_text_continues_in_the_next_one() -> None:
    made = plan(limit=20)
    made.shown(0, "a …")
    assert made.wants(3, LONG) == EditPreview(text="a sentence that is")
    made.shown(3, "a sentence that is")
    assert made.wants(3.1, LONG) == Wait(until=3.8)
    assert made.wants(9, LONG) == PlacePreview(text="longer than …", part=1)
    made.shown(9, "longer than …")
    assert made.wants(12, LONG) == EditPreview(text="longer than the", part=1)
    made.shown(12, "longer than the")
    assert made.wants(15, LONG) == Nothing()
    assert made.wants(18, f"{LONG} and") == PlacePreview(text="threshold …", part=2)
    made.shown(18, "threshold …")
    assert made.wants(21, f"{LONG} and") == EditPreview(text="threshold and ▉", part=2)


def test_messages_that_were_sent_before_a_restart_are_edited() -> None:
    made = plan(limit=20)
    made.restore(0, ["a sentence that is", "old …"])
    assert made.wants(3, LONG) == Wait(until=3.8)
    assert made.wants(3.8, LONG) == EditPreview(text="longer than the", part=1)


def test_a_text_that_replaces_a_long_text_begins_in_the_first_message() -> None:
    made = plan(limit=20)
    made.restore(0, ["a sentence that is"])
    assert made.wants(3, LONG) == PlacePreview(text="longer than …", part=1)
    made.shown(3, "longer than …")
    assert made.wants(6, "Said again") == EditPreview(text="Said again ▉", part=0)


def test_the_limit_is_counted_in_the_units_of_the_platform() -> None:
    made = EditPlan(POLICY, 10, print_markdown, utf16_units)
    made.shown(0, "…")
    assert made.wants(3, "😀" * 9) == EditPreview(text="😀" * 5)


def test_no_call_is_made_during_a_pause_of_the_platform() -> None:
    made = standing("Hello ▉")
    made.frozen(30)
    made.frozen(20)
    assert made.wants(9, LONG) == Wait(until=30)
    assert made.wants(30, LONG) == EditPreview(text=f"{LONG} ▉")


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ("Some **bold wor", "Some \\*\\*bold wor ▉"),
        ("```py\nprint(", "```py\nprint(\n```\n\n▉"),
        ("See [the page](http", "See [the page\\](http ▉"),
        ("1. one\n2. t", "1. one\n2. t ▉"),
        ("| a | b |\n|---|---|\n| c", "| a | b |\n| --- | --- |\n| c |  |\n\n▉"),
    ],
)
def test_unfinished_markdown_is_shown_as_valid_markdown(text: str, frame: str) -> None:
    assert standing("…").wants(9, text) == EditPreview(text=frame)


def test_a_preview_is_rendered_in_the_platform_s_dialect() -> None:
    made = EditPlan(POLICY, 4096, lambda tree: f"<p>{print_plain(tree)}</p>", len)
    assert made.wants(0, "**Hello** wor") == PlacePreview(text="<p>Hello …</p>")
    made.shown(0, "<p>Hello …</p>")
    assert made.wants(9, LONG) == EditPreview(text=f"<p>{LONG} ▉</p>")


def test_a_text_that_grows_is_rendered_once_in_an_interval() -> None:
    rendered: list[int] = []

    def render(tree: Document) -> str:
        rendered.append(len(tree))
        return print_plain(tree)

    made = EditPlan(POLICY, 40, render, len)
    made.shown(0, "…")
    for number in range(400):
        made.wants(number / 100, "word " * (20 + number))
    assert len(rendered) < 5 * 20


WORDS = "Some **bold** words, a [link](http://x.y/z) and `code`. And more.\n\n"
BLOCKS = (
    WORDS,
    "words " * 9,
    "- item\n",
    "| a | b |\n|---|---|\n| c | d |\n\n",
    "```\nx\n```\n",
    "*_`",
)


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("limit", [100, 4096])
def test_a_text_that_exceeds_the_limit_is_not_rendered_again(block: str, limit: int) -> None:
    rendered: list[Document] = []

    def render(tree: Document) -> str:
        rendered.append(tree)
        return print_markdown(tree)

    made = EditPlan(POLICY, limit, render, len)
    made.shown(0, "…")
    text = block * (3 * limit // len(block))
    frame = made.wants(9, text)
    assert isinstance(frame, EditPreview)
    assert len(rendered) <= 40
    rendered.clear()
    for length in (len(text) + 1, 10 * limit, 50 * limit):
        longer = (text * 99)[:length]
        assert made.wants(9.1, longer) == Wait(until=9 + POLICY.edit_interval)
    made.shown(9.2, frame.text)
    following = made.wants(99, text * 99)
    assert isinstance(following, PlacePreview)
    assert following.part == 1
    assert len(rendered) <= 40
    assert made.wants(199, "Said again") == EditPreview(text="Said again ▉", part=0)


def test_a_text_that_fits_is_rendered_once() -> None:
    rendered: list[Document] = []

    def render(tree: Document) -> str:
        rendered.append(tree)
        return print_markdown(tree)

    made = EditPlan(POLICY, 4096, render, len)
    made.shown(0, "…")
    assert isinstance(made.wants(9, WORDS * 50), EditPreview)
    assert len(rendered) == 1


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
def test_calls_keep_the_interval_and_show_the_newest_text(
    steps: list[tuple[float, str, str]], policy: StreamingPolicy, limit: int
) -> None:
    made, now, text = plan(policy, limit), 0.0, ""
    messages: list[str] = []
    calls: list[float] = []

    def called(wish: PlacePreview | EditPreview, *, taken: bool) -> None:
        calls.append(now)
        assert len(wish.text) <= limit
        assert isinstance(wish, PlacePreview) == (wish.part == len(messages))
        assert [wish.text] != messages[wish.part : wish.part + 1]
        if taken:
            messages[wish.part : wish.part + 1] = [wish.text]
            made.shown(now, wish.text)

    for pause, more, fate in steps:
        now += pause
        text = more if fate == "anew" else text + more
        wish = made.wants(now, text)
        if isinstance(wish, PlacePreview | EditPreview):
            called(wish, taken=fate not in ("frozen", "lost"))
            if fate == "frozen":
                made.frozen(now + 5)
    last = 0
    for _ in range(6 + 6 * len(text)):
        wish = made.wants(now, text)
        if isinstance(wish, Wait):
            now = wish.until
        elif isinstance(wish, PlacePreview | EditPreview):
            last = wish.part
            called(wish, taken=True)
    if text.strip() and messages:
        # The cursor, a mark at the end of the preview, may be in a separate paragraph, for example
        # after a code block. So the texts are compared without white space.
        cursor = squeezed(policy.cursor)
        shown = "".join(squeezed(one).removesuffix(cursor) for one in messages[: last + 1])
        # If the markup would leave no room for the text, the preview shows plain text. So the test
        # accepts the text with and without markup.
        tree = tree_of(text)
        forms = (print_markdown(tree), visible(tree))
        assert any(squeezed(form).startswith(shown.rstrip("…")) for form in forms)
    assert made.wants(now + 60, text) == Nothing()
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
def test_a_partial_text_does_not_contain_the_last_word(text: str, first: str) -> None:
    assert print_markdown(placeholder_text(tree_of(text))) == first


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("See **the bold words**", "See **the bold** …"),
        ("[a link](http://x.y)", "[a](http://x.y) …"),
        ("- one\n- two words", "- one\n- two …"),
        ("```\nsome code\n```", "```\nsome\n```\n\n…"),
        ("The answer.\n\n[1]: http://x.y", "The …"),
        ("![picture](http://x.y)", "…"),
    ],
)
def test_the_last_word_that_is_left_out_is_a_visible_word(text: str, first: str) -> None:
    assert print_markdown(placeholder_text(tree_of(text))) == first


@given(st.text(min_size=1) | st.text(alphabet="a …\n*`#>-", min_size=1))
def test_a_partial_text_is_never_the_complete_text(text: str) -> None:
    tree = tree_of(text)
    first = placeholder_text(tree)
    kept = visible(first).rstrip(" …\n")
    assert print_markdown(first) != print_markdown(tree)
    assert visible(tree).startswith(kept)
    assert len(kept) < len(visible(tree)) or not text.strip()
