"""A known word is suggested for a misspelled word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.text.spelling import did_you_mean, nearest, suggestion


def test_a_known_word_is_suggested_for_a_misspelled_word_in_any_case() -> None:
    assert nearest("TELEGRAM.TOKN", ["telegram.token", "Model"]) == "telegram.token"
    assert nearest("modle", ["telegram.token", "Model"]) == "Model"


def test_a_word_that_resembles_nothing_has_no_suggestion() -> None:
    assert nearest("q", ["telegram.token"]) is None
    assert nearest("model", []) is None


@pytest.mark.parametrize(("cutoff", "expected"), [(0.4, "alpha"), (0.9, None)])
def test_the_cutoff_is_the_lowest_accepted_similarity(cutoff: float, expected: str | None) -> None:
    assert nearest("alps", ["alpha", "beta"], cutoff) == expected


def test_only_the_beginning_of_a_long_text_is_compared() -> None:
    assert nearest("a" * 100_000, ["b" * 10]) is None
    assert nearest("model" + "l" * 100_000, ["model"], 0.1) == "model"


@given(st.text(min_size=1, max_size=40), st.lists(st.text(max_size=40), max_size=5))
def test_a_known_word_is_suggested_for_itself(word: str, others: list[str]) -> None:
    found = nearest(word, [*others, word])
    assert found is not None
    assert found.casefold() == word.casefold()


def test_a_hint_ends_a_sentence_and_is_empty_without_a_suggestion() -> None:
    assert did_you_mean("gorq", ["groq"]) == ": did you mean 'groq'?"
    assert did_you_mean("zzz", ["groq"]) == ""


def test_a_suggestion_is_the_end_of_a_message() -> None:
    assert suggestion("model") == ": did you mean 'model'?"
    assert suggestion(None) == suggestion("") == ""
