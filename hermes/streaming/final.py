"""The one message that a turn owes, for platforms that cannot edit and for every outcome."""

from typing import assert_never

from hermes.streaming.fold import BREAK, View, answer
from hermes.types.events import QuestionAsked, TurnFinished


def final_text(view: View) -> str:
    """What the chat is owed: the answer, and what there is to say of it."""
    remarks = [f"({notice.text})" for notice in view.notices if notice.lasting]
    return _joined(spoken(view), "" if view.outcome is None else remark(view.outcome), *remarks)


def spoken(view: View) -> str:
    """The answer so far, then the questions that a suspended turn waits for."""
    if view.outcome is None or view.outcome.outcome != "suspended":
        return answer(view)
    return _joined(answer(view), *map(question_text, view.questions))


def question_text(question: QuestionAsked) -> str:
    """The question with its choices, and how to answer it."""
    choices = enumerate(question.choices, 1)
    lines = [question.prompt, *(f"{number}. {choice}" for number, choice in choices)]
    match question.kind:
        case "approval":
            lines.append(f"Reply /approve {question.id} or /deny {question.id}.")
        case "question":
            lines.append(f"Reply with your answer (question {question.id}).")
        case _:
            assert_never(question.kind)
    return "\n".join(lines)


def remark(end: TurnFinished) -> str:
    """One line on an end that the answer does not speak for itself; else empty."""
    match end.outcome:
        case "completed" | "suspended":
            return ""
        case "stopped":
            return f"(stopped: {end.text})" if end.text else "(stopped)"
        case "failed":
            return end.text or "This went wrong, and no reason was given. Please try again."
        case _:
            assert_never(end.outcome)


def _joined(*parts: str) -> str:
    return BREAK.join(part for part in parts if part)
