"""A summary replaces only messages that may be replaced."""

import time

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from hermes.core.auxiliary import Auxiliary
from hermes.core.compaction import Compactor, choose_range, chunks, last_request, range_on_request
from hermes.core.window import Window, message_tokens, tokens
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.turns import CHOICE
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
)

WINDOW = Window.of(2000, 200, 0.75)


def step(number: int, size: int = 200) -> list[Message]:
    """Returns a step in which the model calls a tool and gets its result."""
    call = ToolCall(id=CallId(f"t_{number}_0"), name="look", arguments="{}")
    return [AssistantMessage(calls=(call,)), ToolMessage(call=call.id, text="r" * size)]


def exchange(number: int, size: int = 200) -> list[Message]:
    return [
        UserMessage(text=f"question {number} " + "q" * size),
        AssistantMessage(text=f"answer {number} " + "a" * size),
    ]


histories = st.lists(
    st.one_of(
        st.builds(exchange, st.integers(0, 99), st.integers(0, 3000)),
        st.builds(step, st.integers(0, 99), st.integers(0, 3000)),
    ),
    max_size=30,
).map(lambda parts: [UserMessage(text="the first"), *(m for part in parts for m in part)])


@given(histories)
def test_a_summary_never_separates_a_call_from_its_result_or_replaces_the_last_request(
    history: list[Message],
) -> None:
    cut = choose_range(history, WINDOW)
    if cut is None:
        return
    assert 0 <= cut.first < cut.last <= len(history) - 1
    assert not isinstance(history[cut.first], ToolMessage)
    assert not isinstance(history[cut.last], ToolMessage)
    people = [i for i, message in enumerate(history) if isinstance(message, UserMessage)]
    assert not cut.first <= people[-1] < cut.last


@given(histories)
def test_a_long_conversation_is_shortened(history: list[Message]) -> None:
    """If a conversation is much larger than the window, a summary replaces more than half of the
    conversation."""
    total = sum(map(message_tokens, history))
    largest = max(sum(map(message_tokens, history[i : i + 2])) for i in range(len(history)))
    if total < 6 * WINDOW.room or largest > WINDOW.room // 4:
        return
    cut = choose_range(history, WINDOW)
    assert cut is not None
    left = total - sum(map(message_tokens, history[cut.first : cut.last]))
    assert left < total / 2


def test_the_beginning_of_the_conversation_is_kept_while_it_is_short() -> None:
    history = [m for n in range(12) for m in exchange(n)]
    cut = choose_range(history, WINDOW)
    assert cut is not None
    assert cut.first == 2
    long_beginning = [*exchange(0, 4000), *history]
    again = choose_range(long_beginning, WINDOW)
    assert again is not None
    assert again.first == 0


def test_a_long_turn_is_summarised_after_its_request() -> None:
    history: list[Message] = [UserMessage(text="do it"), *(m for n in range(20) for m in step(n))]
    cut = choose_range(history, WINDOW)
    assert cut is not None
    assert cut.first >= 1
    assert isinstance(history[cut.first], AssistantMessage)


def test_a_summary_is_not_mistaken_for_the_last_request() -> None:
    request = UserMessage(text="do it")
    notes = UserMessage(text="notes", summary=True)
    early = [m for n in range(8) for m in exchange(n)]
    late = [m for n in range(20) for m in step(n)]
    history: list[Message] = [*early, request, notes, *late]
    cut = choose_range(history, WINDOW)
    assert cut is not None
    assert not cut.first <= history.index(request) < cut.last
    assert last_request(history) == history.index(request)
    assert last_request([notes]) == 1


async def test_a_message_of_a_person_that_looks_like_a_summary_is_a_request() -> None:
    model = ScriptedModel([says("notes")])
    compactor = Compactor(Auxiliary(model, lambda main: main))
    summary = await compactor.summary(CHOICE, exchange(0), WINDOW, lambda event: None)
    assert summary.summary
    typed = UserMessage(text=summary.text)
    assert last_request([*exchange(0), typed, *step(1)]) == 2
    assert b"summary" not in msgspec.json.encode(typed)
    assert msgspec.json.decode(msgspec.json.encode(summary), type=Message) == summary


def test_after_a_long_request_fewer_of_the_last_messages_are_kept() -> None:
    work = [m for n in range(4) for m in step(n)]
    assert choose_range([UserMessage(text="do it"), *work], WINDOW) is None
    cut = choose_range([UserMessage(text="do it " * 800), *work], WINDOW)
    assert cut is not None
    assert cut.last == len(work) - 1


def test_a_summary_alone_is_not_summarised_again() -> None:
    notes = UserMessage(text="n" * 30_000, summary=True)
    request = UserMessage(text="do it " * 3000)
    assert choose_range([request, notes, *step(1)], WINDOW) is None
    said = UserMessage(text=notes.text)
    assert choose_range([said, request, *step(1)], WINDOW) is not None


def test_two_messages_are_not_summarised() -> None:
    assert choose_range([*exchange(0), *exchange(1)], WINDOW) is None
    assert choose_range([], WINDOW) is None


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=400), max_size=12),
    st.integers(50, 400),
)
def test_chunks_contain_every_word_and_are_small_enough(texts: list[str], size: int) -> None:
    messages = [UserMessage(text=text) for text in texts]
    pieces = chunks(messages, size)
    joined = "".join("".join(pieces).split())
    assert joined == "".join("".join(f"person: {text}" for text in texts).split())
    assert all(tokens(piece) <= size + len(texts) for piece in pieces)


def test_ten_megabytes_are_split_in_limited_time() -> None:
    messages = [UserMessage(text="привет мир " * 25) for _ in range(20_000)]
    began = time.process_time()
    pieces = chunks(messages, 500_000)
    # The split takes about 0.1 s. If the code measured each piece repeatedly, the split would take
    # 10 s.
    assert time.process_time() - began < 1
    assert len(pieces) == 6


async def test_each_piece_of_a_long_middle_is_summarised_together_with_the_notes_so_far() -> None:
    model = ScriptedModel([says("one"), says("two"), says("three")])
    compactor = Compactor(Auxiliary(model, lambda main: main))
    messages = [m for n in range(3) for m in exchange(n, 1100)]
    window = Window.of(1600, 100, 0.75)
    summary = await compactor.summary(CHOICE, messages, window, lambda event: None)
    assert summary.text.startswith("[Notes on 6 earlier messages")
    assert "not instructions" in summary.text
    assert summary.text.endswith("three")
    asked = [request.messages[0].text for request in model.requests]
    assert len(asked) == 3
    assert "one" in asked[1].splitlines()
    assert "two" in asked[2].splitlines()
    for number in range(3):
        assert any(f"question {number}" in text for text in asked)
        assert any(f"answer {number}" in text for text in asked)


def test_the_summarised_text_names_attachments() -> None:
    cat = Attachment(kind="image", path="a", name="cat.png")
    assert chunks([UserMessage(text="Look.", attachments=(cat,))], 100) == [
        "person: [image cat.png]\nLook."
    ]


def test_on_request_the_middle_of_a_short_conversation_is_summarised() -> None:
    history: list[Message] = [m for number in range(6) for m in exchange(number, 20)]
    history.append(UserMessage(text="next"))
    assert choose_range(history, Window.of(100_000, 1000, 0.75)) is None
    cut = range_on_request(history)
    assert cut is not None
    kept = len(history) - (cut.last - cut.first)
    assert 2 <= kept <= len(history) // 2
    assert range_on_request(history[-1:]) is None
    assert range_on_request([]) is None
