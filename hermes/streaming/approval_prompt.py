"""The text with which a terminal shows an approval, and the answers that a person can type."""

from hermes.types.approvals import Grant, offered_grants, short_id
from hermes.types.events import QuestionAsked
from hermes.types.messages import DENY
from hermes.types.value import Value

APPROVAL_BAR = "┃ "
"""The beginning of every line of an approval, so that an approval can't be mistaken for other
output."""
_NO = "No"
"""The label of the answer that denies the action."""
_GRANT_WORDS: dict[Grant, tuple[str, ...]] = {
    "once": ("once", "o", "yes", "y", "approve", "approved"),
    "session": ("session", "this session", "s"),
    "always": ("always", "a"),
}
_DENY_WORDS = ("no", "n", "deny", "denied")
HOW_TO_DECIDE = (
    "Type a number or the first letter, or yes or no. Any other text waits until you decide."
)


class ApprovalAnswer(Value):
    """An answer that decides an approval."""

    choice: str
    """The label of the button that has the same effect as this answer."""
    shown: str
    words: tuple[str, ...]
    """Texts that a person can type to give this answer, in lower case."""


def approval_answers(event: QuestionAsked) -> list[ApprovalAnswer]:
    """Returns the answers that decide the approval. A person can also type the number of an answer:
    1 for the first answer."""
    granting = [
        ApprovalAnswer(choice=label, shown=label, words=_GRANT_WORDS[grant])
        for grant, label in offered_grants(event.choices).items()
    ]
    return [*granting, ApprovalAnswer(choice=DENY, shown=_NO, words=_DENY_WORDS)]


def decided(event: QuestionAsked, text: str) -> str | None:
    """Returns the choice that the text selects, by a number or a word."""
    word = _word(text)
    for number, answer in enumerate(approval_answers(event), 1):
        if word == str(number) or word in answer.words:
            return answer.choice
    return None


def refusal(event: QuestionAsked, text: str) -> str:
    """Returns an error message for a text that looks like an answer, but selects no choice. Returns
    "" for any other text, which counts as an ordinary message."""
    word, count = _word(text), len(approval_answers(event))
    if word.isdecimal():
        return f"There are {count} choices: 1 to {count}."
    if any(word in words for words in _GRANT_WORDS.values()):
        return "This action can only be approved once: yes or no."
    return ""


def choice_lines(event: QuestionAsked) -> list[str]:
    """Returns the numbered choices, and how to answer."""
    numbered = enumerate(approval_answers(event), 1)
    choices = "   ".join(f"{number}. {answer.shown}" for number, answer in numbered)
    return [choices, HOW_TO_DECIDE, f"Approval {short_id(event.id)}; /stop cancels it."]


def barred(text: str) -> str:
    """Returns the text with the bar before each line."""
    return "\n".join(f"{APPROVAL_BAR}{line}".rstrip() for line in text.split("\n"))


def approval_text(event: QuestionAsked) -> str:
    """Returns the question that asks for the approval, with its choices as plain text."""
    return barred("\n".join([event.prompt, "", *choice_lines(event)]))


def _word(text: str) -> str:
    return text.strip().rstrip(".!").casefold()
