"""The estimated number of tokens is close to the number that a tokenizer counts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.core.window import (
    IMAGE_TOKENS,
    EstimateCorrection,
    Window,
    message_tokens,
    tokens,
    tokens_in_bytes,
)
from hermes.testing.turns import CHOICE
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    AttachmentKind,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.types.profile import UNKNOWN_LENGTH


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        # These numbers were counted with DeepSeek's tokenizer.
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("def add(a: int, b: int) -> int:\n    return a + b\n", 19),
        ('{"path": "src/main.py", "offset": 1, "limit": 2000}', 21),
        ("Der Kühlschrank ist leer, bitte kaufe Milch und Brot.", 19),
        ("Съешь же ещё этих мягких французских булок", 14),
        ("敏捷的棕色狐狸跳过了懒狗", 8),
        ("سأذهب إلى السوق غداً صباحاً", 13),
    ],
)
def test_an_estimate_is_between_two_thirds_and_twice_the_count_of_a_tokenizer(
    text: str, counted: int
) -> None:
    assert counted * 2 / 3 <= tokens(text) <= counted * 2


@given(st.text(), st.text())
def test_more_text_never_has_fewer_tokens(one: str, other: str) -> None:
    assert tokens(one + other) >= max(tokens(one), tokens(other))


def test_every_part_of_a_message_has_tokens() -> None:
    call = ToolCall(id=CallId("t_0_0"), name="read_file", arguments='{"path": "x"}')
    assert message_tokens(AssistantMessage(calls=(call,))) > message_tokens(AssistantMessage())
    assert message_tokens(UserMessage(text="hi", sender="Alice")) > message_tokens(
        UserMessage(text="hi")
    )
    assert message_tokens(ToolMessage(call=call.id, text="x" * 700)) > 200


def test_the_estimates_from_a_text_and_from_its_size_in_bytes_are_close() -> None:
    assert tokens_in_bytes(700) == 200
    assert tokens("x" * 700) == tokens_in_bytes(700) + 1
    assert tokens("я" * 350) == tokens_in_bytes(700) + 1


def test_a_model_with_an_unknown_context_length_gets_the_default() -> None:
    assert CHOICE.window == UNKNOWN_LENGTH
    assert replace(CHOICE, context_length=5).window == 5


def test_a_window_keeps_room_for_the_answer() -> None:
    window = Window.of(8000, 2000, 0.75)
    assert (window.room, window.limit) == (6000, 4500)
    assert Window.of(1000, 5000, 0.75).room == 500
    assert Window.of(8000, 2000, None).limit is None


def test_the_count_of_the_provider_corrects_an_estimate() -> None:
    scale = EstimateCorrection()
    scale.learn(1000, 1300)
    assert scale(2000) == 2600
    scale.learn(1000, 40)  # this provider counts only uncached tokens
    assert scale(2000) == 2600


@pytest.mark.parametrize(
    ("kind", "size", "expected"),
    [
        ("image", 10, IMAGE_TOKENS),
        ("image", 5_000_000, IMAGE_TOKENS),
        ("audio", 16_000 * 60, 61 * 32),
        ("file", 1_000_000, 33_000),
    ],
)
def test_the_tokens_of_an_attachment_depend_on_its_kind_and_size(
    kind: AttachmentKind, size: int, expected: int
) -> None:
    bare = UserMessage(text="look")
    attached = replace(bare, attachments=(Attachment(kind=kind, path="a", size=size),))
    assert message_tokens(attached) - message_tokens(bare) == expected
