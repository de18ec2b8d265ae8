"""A turn sends the right final message for each outcome."""

import pytest

from hermes.streaming.final import choices_of, final_content, final_text, question_text
from hermes.streaming.fold import View
from hermes.types.events import Notice, QuestionAsked, TurnFinished
from hermes.types.identity import CallId
from hermes.types.messages import Content

APPROVAL = QuestionAsked(
    id="a7", call=CallId("t_0_0"), kind="approval", prompt="Run `make`?", choices=("once", "always")
)


def test_a_completed_turn_sends_its_answer() -> None:
    view = View(segments=("One", "Two"), outcome=TurnFinished(outcome="completed"))
    assert final_text(view) == "One\n\nTwo"


def test_the_final_message_of_a_running_turn_is_its_text_so_far() -> None:
    assert final_text(View(current="One", questions=(APPROVAL,))) == "One"


def test_a_suspended_turn_sends_its_question_with_id_and_choices() -> None:
    view = View(
        segments=("Let me see.",),
        questions=(APPROVAL,),
        outcome=TurnFinished(outcome="suspended"),
    )
    assert final_text(view) == (
        "Let me see.\n\nRun `make`?\nAnswer with /approve a7 or /deny a7."
        " For longer: /approve a7 session, or /approve a7 always."
    )


def test_a_question_without_choices_says_how_to_answer() -> None:
    question = QuestionAsked(id="q1", call=CallId("t_0_0"), kind="question", prompt="Which?")
    assert question_text(question) == "Which?\nReply with your answer (question q1)."


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (TurnFinished(outcome="stopped"), "So far\n\n(stopped)"),
        (TurnFinished(outcome="stopped", text="/stop"), "So far\n\n(stopped: /stop)"),
        (TurnFinished(outcome="failed", text="The key is wrong."), "So far\n\nThe key is wrong."),
        (
            TurnFinished(outcome="completed", finish_reason="length"),
            "So far\n\n(The answer was cut off at the model's limit of output tokens."
            ' Say "continue" to get the rest.)',
        ),
        (
            TurnFinished(outcome="completed", finish_reason="content_filter"),
            "So far\n\n(The answer was cut off by the provider's content filter.)",
        ),
    ],
)
def test_if_a_turn_ends_early_the_reason_follows_the_answer_so_far(
    end: TurnFinished, text: str
) -> None:
    assert final_text(View(segments=("So far",), outcome=end)) == text


def test_a_failed_turn_always_sends_a_message() -> None:
    assert final_text(View(outcome=TurnFinished(outcome="failed")))


def test_the_questions_of_a_suspended_turn_have_choices() -> None:
    question = QuestionAsked(
        id="q1", call=CallId("t_0_0"), kind="question", prompt="Which?", choices=("red", "blue")
    )
    plain = QuestionAsked(id="q2", call=CallId("t_0_1"), kind="question", prompt="Name?")
    view = View(
        segments=("Let me see.",),
        questions=(APPROVAL, question, plain),
        notices=(Notice(text="a remark", lasting=True), Notice(text="a passing one")),
        outcome=TurnFinished(outcome="suspended"),
    )
    content = final_content(view)
    assert content is not None
    assert content.text == "Let me see.\n\n(a remark)"
    assert [(one.question, one.prompt, one.labels) for one in content.choices] == [
        ("a7", "Run `make`?", ("once", "always", "Deny")),
        ("q1", "Which?", ("red", "blue")),
        ("q2", "Name?", ()),
    ]
    assert [one.hint[:18] for one in content.choices] == ["Answer with /appro", "", ""]
    assert content.choices[1].text == (
        "Which?\n\n1. red\n2. blue\n\nReply with your answer (question q1)."
    )


def test_an_approval_without_choices_offers_approve_and_deny() -> None:
    asked = QuestionAsked(id="a1", call=CallId("t_0_0"), kind="approval", prompt="Run it?")
    assert choices_of(asked).labels == ("Approve", "Deny")


def test_other_outcomes_have_no_choices_and_an_empty_turn_sends_nothing() -> None:
    view = View(segments=("One",), questions=(APPROVAL,), outcome=TurnFinished(outcome="completed"))
    assert final_content(view) == Content(text="One")
    assert final_content(View(outcome=TurnFinished(outcome="completed"))) is None
