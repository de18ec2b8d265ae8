"""Thoughts come back where they were, and to nobody else."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from hermes.core.models.thoughts import Thought, echoed, kept, woven
from hermes.testing.upstream import choice_of
from hermes.types.messages import AssistantMessage, Echo


@given(st.lists(st.booleans(), max_size=12))
def test_thoughts_are_woven_in_where_they_were(order: list[bool]) -> None:
    whole = [b'"%d"' % index for index in range(len(order))]
    parts: list[bytes] = []
    thoughts: list[Thought] = []
    for piece, is_thought in zip(whole, order, strict=True):
        if is_thought:
            thoughts.append(Thought(len(parts), Raw(piece)))
        else:
            parts.append(piece)
    assert woven(parts, kept(thoughts).decode()) == whole


def test_only_the_model_that_had_them_is_given_thoughts() -> None:
    choice = choice_of("anthropic")
    mine = Echo(wire="anthropic", model=choice.model, body="[]")
    assert echoed(AssistantMessage(echo=mine), choice) == "[]"
    assert echoed(AssistantMessage(), choice) == ""
    assert echoed(AssistantMessage(echo=mine), choice_of("responses")) == ""
    other = Echo(wire="anthropic", model="other", body="[]")
    assert echoed(AssistantMessage(echo=other), choice) == ""
