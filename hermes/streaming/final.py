"""The content that a chat receives at the end of a turn, for every outcome."""

from typing import assert_never

from msgspec.structs import replace

from hermes.streaming.fold import SEGMENT_SEPARATOR, View, answer
from hermes.types.approvals import short_id
from hermes.types.events import QuestionAsked, TurnFinished
from hermes.types.messages import APPROVE, DENY, Choices, Content

_CUT_REMARKS = {
    "length": '(The answer was cut off at the model\'s limit of output tokens. Say "continue" to'
    " get the rest.)",
    "content_filter": "(The answer was cut off by the provider's content filter.)",
}


def final_content(view: View) -> Content | None:
    """Returns the answer, the remarks about the end of the turn and the open questions; None if
    there is nothing to show."""
    text = final_text(replace(view, questions=()))
    choices = tuple(map(choices_of, view.questions)) if _suspended(view) else ()
    return Content(text=text, choices=choices) if text or choices else None


def final_text(view: View) -> str:
    """Returns the answer, the open questions and the remarks about the end of the turn as one
    text."""
    remarks = [f"({notice.text})" for notice in view.notices if notice.lasting]
    return _joined(
        answer_with_questions(view),
        "" if view.outcome is None else end_remark(view.outcome),
        *remarks,
    )


def answer_with_questions(view: View) -> str:
    """Returns the answer so far, followed by the open questions of a suspended turn."""
    if not _suspended(view):
        return answer(view)
    return _joined(answer(view), *map(question_text, view.questions))


def choices_of(question: QuestionAsked) -> Choices:
    """Returns the question with the buttons that answer it."""
    labels = question.choices
    _, _, how = parts = _question_parts(question)
    if question.kind == "approval":
        approving = (label for label in labels if label.casefold() != DENY.casefold())
        labels = (*(approving if labels else (APPROVE,)), DENY)
    return Choices(
        question=question.id,
        prompt=question.prompt,
        labels=labels,
        # Blank lines separate the parts, because Markdown reads a line right below a list as part
        # of the list's last item.
        text=_joined(*parts),
        # A person who decides from another chat needs the id.
        hint=how if question.kind == "approval" else "",
    )


def question_text(question: QuestionAsked) -> str:
    """Returns the question, its choices and instructions for answering."""
    return "\n".join(part for part in _question_parts(question) if part)


def _question_parts(question: QuestionAsked) -> tuple[str, str, str]:
    """Returns the question, its numbered choices, and instructions for answering."""
    numbered = enumerate(question.choices, 1)
    choices = "\n".join(f"{number}. {choice}" for number, choice in numbered)
    match question.kind:
        case "approval":
            short = short_id(question.id)
            choices = ""
            how = f"Answer with /approve {short} or /deny {short}."
            if len(question.choices) > 1:
                how += f" For longer: /approve {short} session, or /approve {short} always."
        case "question":
            how = f"Reply with your answer (question {question.id})."
        case _:
            assert_never(question.kind)
    return question.prompt, choices, how


def end_remark(end: TurnFinished) -> str:
    """Returns a line that explains an unusual end, such as a failure or a cut answer. Returns ""
    for any other end."""
    match end.outcome:
        case "completed":
            return _CUT_REMARKS.get(end.finish_reason, "")
        case "suspended":
            return ""
        case "stopped":
            return f"(stopped: {end.text})" if end.text else "(stopped)"
        case "failed":
            return end.text or "This went wrong, and no reason was given. Please try again."
        case _:
            assert_never(end.outcome)


def _suspended(view: View) -> bool:
    return view.outcome is not None and view.outcome.outcome == "suspended"


def _joined(*parts: str) -> str:
    return SEGMENT_SEPARATOR.join(part for part in parts if part)
