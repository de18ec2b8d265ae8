"""Holds the open questions of a terminal's session, and finds the answer in a person's input."""

from collections.abc import Sequence

from hermes.control.sessions import OpenQuestion
from hermes.streaming.approval_prompt import decided, refusal
from hermes.types.events import QuestionAsked
from hermes.types.identity import CallId
from hermes.types.messages import Pressed, Refused


class OpenQuestions:
    """Asks one question at a time. A text that the person types answers only the question that was
    shown last."""

    def __init__(self) -> None:
        self._waiting: list[QuestionAsked] = []
        self._shown = ""
        """The id of the question that was shown last."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, question: QuestionAsked) -> None:
        # While an approval is shown, most texts are sent as messages. Such a message would answer a
        # plain question that is not shown yet. So plain questions are asked before approvals.
        self._waiting.append(question)
        self._waiting.sort(key=lambda one: (one.kind == "approval", one.id))

    def clear(self) -> None:
        self._waiting.clear()
        self._shown = ""

    def replace(self, stored: Sequence[OpenQuestion]) -> None:
        """Replaces the questions by those that are open in the store."""
        known = {one.id: one for one in self._waiting}
        self._waiting.clear()
        for one in stored:
            self.add(known.get(one.id) or asked_of(one))

    def next(self) -> QuestionAsked | None:
        """Returns the first open question, which the caller must then show. Returns None if no
        question is open, or if the first question is still the question that was shown last."""
        first = next(iter(self._waiting), None)
        if first is None or first.id == self._shown:
            return None
        self._shown = first.id
        return first

    def answer(self, text: str) -> Pressed | Refused | None:
        """Returns the choice that the text selects, or the reason why the text can't be an answer.
        Returns None if the text must be sent as a message. A question that is answered is
        removed."""
        question = next((one for one in self._waiting if one.id == self._shown), None)
        if question is None or text.startswith("/"):
            return None
        approval = question.kind == "approval"
        choice = decided(question, text) if approval else chosen(question, text)
        if choice is not None:
            self._waiting.remove(question)
            return Pressed(question=question.id, choice=choice)
        if approval:
            reason = refusal(question, text)
            return Refused(reason=reason) if reason else None
        if out_of_range(question, text):
            count = len(question.choices)
            return Refused(reason=f"There are {count} choices: 1 to {count}, or your own words.")
        self._waiting.remove(question)
        return None


def asked_of(stored: OpenQuestion) -> QuestionAsked:
    """Returns the stored question as an event."""
    return QuestionAsked(
        id=stored.id,
        call=CallId(""),
        kind="approval" if stored.kind == "approval" else "question",
        prompt=stored.prompt,
        choices=stored.choices,
        detail=stored.detail,
    )


def out_of_range(question: QuestionAsked, text: str) -> bool:
    """Returns whether the text is the number of a choice that does not exist."""
    words = any(character.isdigit() for choice in question.choices for character in choice)
    return bool(question.choices) and text.strip().isdecimal() and not words


def chosen(question: QuestionAsked, text: str) -> str | None:
    """Returns the choice that the text selects, by its words or its number."""
    named = {choice.casefold(): choice for choice in reversed(question.choices)}
    numbered = {str(number): choice for number, choice in enumerate(question.choices, 1)}
    return named.get(text.casefold()) or numbered.get(text)
