"""Hermes knows every finish reason in the types of the vendors' own packages."""

from typing import get_args

import pytest
from anthropic.types import StopReason
from openai.types.chat.chat_completion_chunk import Choice
from openai.types.responses.response import IncompleteDetails

from hermes.core.models.finish_reasons import cut_by


def literals(hint: object) -> set[str]:
    """Returns the strings that a type allows."""
    inner = get_args(hint)
    found = {one for one in inner if isinstance(one, str)}
    return found.union(*(literals(one) for one in inner if not isinstance(one, str)))


def test_all_finish_reasons_of_openai_are_known() -> None:
    reasons = literals(Choice.model_fields["finish_reason"].annotation)
    assert {reason: cut_by(reason) for reason in reasons} == {
        "stop": "",
        "tool_calls": "",
        "function_call": "",
        "length": "length",
        "content_filter": "content_filter",
    }
    incomplete = literals(IncompleteDetails.model_fields["reason"].annotation)
    assert incomplete >= {"max_output_tokens", "content_filter"}
    assert cut_by("max_output_tokens") == "length"


def test_all_finish_reasons_of_anthropic_are_known() -> None:
    whole = {"end_turn", "stop_sequence", "tool_use", "pause_turn"}
    cuts = {reason: cut_by(reason) for reason in literals(StopReason) - whole}
    assert cuts["max_tokens"] == cuts["model_context_window_exceeded"] == "length"
    assert cuts["refusal"] == "content_filter"
    assert all(cuts.values()), "every other reason is a cut"
    assert not any(map(cut_by, whole))


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "model_length", "Length"])
def test_finish_reasons_are_recognized_in_several_spellings(reason: str) -> None:
    assert cut_by(reason) == "length"


@pytest.mark.parametrize("reason", [None, "", "something new"])
def test_any_other_reason_means_a_complete_answer(reason: str | None) -> None:
    assert cut_by(reason) == ""
