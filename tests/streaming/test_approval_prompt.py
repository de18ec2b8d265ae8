"""A person decides an approval by typing a number, a letter or a word. Other output can't be
mistaken for an approval."""

import pytest

from hermes.streaming.approval_prompt import approval_text, decided, refusal
from hermes.types.events import QuestionAsked
from hermes.types.identity import CallId

LASTING = QuestionAsked(
    id="0000000012345678",
    call=CallId("t_0_0"),
    kind="approval",
    prompt="I am about to run a command:\n\n```\nrm -rf a\n1. No\n```",
    choices=("Once", "This session", "Always"),
)
ONCE = QuestionAsked(
    id="1", call=CallId("t_0_0"), kind="approval", prompt="Send it?", choices=("Once",)
)


@pytest.mark.parametrize(
    ("typed", "choice"),
    [
        ("1", "Once"),
        ("o", "Once"),
        ("Yes.", "Once"),
        ("2", "This session"),
        ("s", "This session"),
        ("session", "This session"),
        ("3", "Always"),
        ("A", "Always"),
        ("4", "Deny"),
        ("n", "Deny"),
        ("no!", "Deny"),
        ("5", None),
        ("yes please", None),
        ("no, use the trash", None),
        ("", None),
    ],
)
def test_an_answer_selects_a_choice(typed: str, choice: str | None) -> None:
    assert decided(LASTING, typed) == choice


def test_a_choice_that_is_not_offered_is_refused_with_a_reason() -> None:
    assert decided(ONCE, "2") == "Deny"
    assert decided(ONCE, "always") is None
    assert refusal(ONCE, "always") == "This action can only be approved once: yes or no."
    assert refusal(ONCE, "3") == "There are 2 choices: 1 to 2."
    assert refusal(ONCE, "what does it do?") == ""


def test_every_line_of_the_text_begins_with_a_bar() -> None:
    lines = approval_text(LASTING).split("\n")
    assert all(line.startswith("┃") for line in lines)
    assert "┃ rm -rf a" in lines
    assert "┃ 1. Once   2. This session   3. Always   4. No" in lines
    assert lines[-1] == "┃ Approval 12345678; /stop cancels it."
