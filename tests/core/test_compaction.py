"""What a summary stands for, and what it never does."""

from hypothesis import given
from hypothesis import strategies as st

from hermes.core.auxiliary import Auxiliary
from hermes.core.compaction import MARK, Compactor, choose, chunks
from hermes.core.window import Window, tokens, weight
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.turns import CHOICE
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage

WINDOW = Window.of(2000, 200, 0.75)


def step(number: int, size: int = 200) -> list[Message]:
    """The model calls a tool and gets its result."""
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
def test_a_cut_never_parts_a_call_from_its_result_nor_takes_the_last_request(
    history: list[Message],
) -> None:
    cut = choose(history, WINDOW)
    if cut is None:
        return
    assert 0 <= cut.first < cut.last <= len(history) - 1
    assert not isinstance(history[cut.first], ToolMessage)
    assert not isinstance(history[cut.last], ToolMessage)
    people = [i for i, message in enumerate(history) if isinstance(message, UserMessage)]
    assert not cut.first <= people[-1] < cut.last


@given(histories)
def test_what_can_be_shortened_is_shortened(history: list[Message]) -> None:
    """A conversation much larger than the window has a cut that leaves less than half of it."""
    total = sum(map(weight, history))
    largest = max(sum(map(weight, history[i : i + 2])) for i in range(len(history)))
    if total < 6 * WINDOW.room or largest > WINDOW.room // 4:
        return
    cut = choose(history, WINDOW)
    assert cut is not None
    left = total - sum(map(weight, history[cut.first : cut.last]))
    assert left < total / 2


def test_the_beginning_is_kept_while_it_is_short() -> None:
    history = [m for n in range(12) for m in exchange(n)]
    cut = choose(history, WINDOW)
    assert cut is not None
    assert cut.first == 2
    long_beginning = [*exchange(0, 4000), *history]
    again = choose(long_beginning, WINDOW)
    assert again is not None
    assert again.first == 0


def test_long_work_on_one_request_is_cut_behind_the_request() -> None:
    history: list[Message] = [UserMessage(text="do it"), *(m for n in range(20) for m in step(n))]
    cut = choose(history, WINDOW)
    assert cut is not None
    assert cut.first >= 1
    assert isinstance(history[cut.first], AssistantMessage)


def test_a_summary_is_not_taken_for_the_request_that_it_follows() -> None:
    request = UserMessage(text="do it")
    notes = UserMessage(text=f"{MARK}: 9 of them, summarised to save space]\n\nnotes")
    early = [m for n in range(8) for m in exchange(n)]
    late = [m for n in range(20) for m in step(n)]
    history: list[Message] = [*early, request, notes, *late]
    cut = choose(history, WINDOW)
    assert cut is not None
    assert not cut.first <= history.index(request) < cut.last


def test_two_messages_are_not_worth_a_summary() -> None:
    assert choose([*exchange(0), *exchange(1)], WINDOW) is None
    assert choose([], WINDOW) is None


@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=400), max_size=12),
    st.integers(50, 400),
)
def test_chunks_hold_every_word_and_are_small_enough(texts: list[str], size: int) -> None:
    messages = [UserMessage(text=text) for text in texts]
    pieces = chunks(messages, size)
    joined = "".join("".join(pieces).split())
    assert joined == "".join("".join(f"person: {text}" for text in texts).split())
    assert all(tokens(piece) <= size + 2 * len(texts) + 2 for piece in pieces)


async def test_a_long_middle_is_summarised_in_pieces_each_with_the_notes_so_far() -> None:
    model = ScriptedModel([says("one"), says("two"), says("three")])
    compactor = Compactor(Auxiliary(model, lambda main: main))
    messages = [m for n in range(3) for m in exchange(n, 1100)]
    window = Window.of(1600, 100, 0.75)
    summary = await compactor.summary(CHOICE, messages, window, lambda event: None)
    assert summary.text.startswith(MARK)
    assert summary.text.endswith("three")
    asked = [request.messages[0].text for request in model.requests]
    assert len(asked) == 3
    assert "one" in asked[1].splitlines()
    assert "two" in asked[2].splitlines()
    for number in range(3):
        assert any(f"question {number}" in text for text in asked)
        assert any(f"answer {number}" in text for text in asked)
