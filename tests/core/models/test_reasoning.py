"""Reasoning is sent back at its original positions, and only to the model that wrote it."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from hermes.core.models.reasoning import (
    ReasoningPart,
    echo_body,
    encode_reasoning,
    insert_reasoning,
)
from hermes.testing.upstream import choice_of
from hermes.types.messages import AssistantMessage, Echo


@given(st.lists(st.booleans(), max_size=12))
def test_reasoning_is_inserted_at_its_original_positions(order: list[bool]) -> None:
    whole = [b'"%d"' % index for index in range(len(order))]
    parts: list[bytes] = []
    thoughts: list[ReasoningPart] = []
    for piece, is_thought in zip(whole, order, strict=True):
        if is_thought:
            thoughts.append(ReasoningPart(len(parts), Raw(piece)))
        else:
            parts.append(piece)
    assert insert_reasoning(parts, encode_reasoning(thoughts).decode()) == whole


def test_only_the_model_that_wrote_the_reasoning_gets_it_back() -> None:
    choice = choice_of("anthropic")
    mine = Echo(wire="anthropic", model=choice.model, body="[]")
    assert echo_body(AssistantMessage(echo=mine), choice) == "[]"
    assert echo_body(AssistantMessage(), choice) == ""
    assert echo_body(AssistantMessage(echo=mine), choice_of("responses")) == ""
    other = Echo(wire="anthropic", model="other", body="[]")
    assert echo_body(AssistantMessage(echo=other), choice) == ""
