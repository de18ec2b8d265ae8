"""An answer is for the question that was shown last."""

from hermes.entry.cli.open_questions import OpenQuestions, chosen
from hermes.types.events import QuestionAsked
from hermes.types.identity import CallId
from hermes.types.messages import Pressed

PLAIN = QuestionAsked(id="2", call=CallId("b"), kind="question", prompt="Which?")
APPROVAL = QuestionAsked(
    id="1", call=CallId("a"), kind="approval", prompt="Run it?", choices=("Once",)
)


def test_plain_questions_are_asked_before_approvals_and_each_is_shown_once() -> None:
    questions = OpenQuestions()
    questions.add(APPROVAL)
    questions.add(PLAIN)
    assert questions.next() == PLAIN
    assert questions.next() is None
    assert questions.answer("red") is None
    assert questions.next() == APPROVAL
    assert questions.answer("red") is None
    assert questions.answer("yes") == Pressed(question="1", choice="Once")
    assert not questions


def test_a_question_that_was_not_shown_is_not_answered() -> None:
    questions = OpenQuestions()
    questions.add(APPROVAL)
    assert questions.answer("yes") is None
    assert questions


def test_a_command_is_no_answer() -> None:
    questions = OpenQuestions()
    questions.add(PLAIN)
    assert questions.next()
    assert questions.answer("/status") is None
    assert questions


def test_the_words_of_a_choice_take_precedence_over_numbers() -> None:
    asked = QuestionAsked(
        id="q", call=CallId("c"), kind="question", prompt="?", choices=("two", "1", "x")
    )
    assert [chosen(asked, text) for text in ("1", "2", "3", "4", "X")] == ["1", "1", "x", None, "x"]
