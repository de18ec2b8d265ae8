"""How much of a model's window a conversation takes: estimates that are good enough to act on."""

from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.value import Value

UNKNOWN = 128_000
"""Tokens that a model is taken to read where nobody says how many."""
EACH = 6
"""Tokens that a message costs besides its words."""


def tokens(text: str) -> int:
    """About as many as a tokenizer would make of the text; rather more than fewer.

    Two of seven bytes: 3.5 letters of English, one and a half of Cyrillic, one of Chinese.
    """
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    return size * 2 // 7 + 1


def weight(message: Message) -> int:
    """Tokens of one message."""
    match message:
        case UserMessage(text=text, sender=sender):
            return EACH + tokens(text) + tokens(sender or "")
        case AssistantMessage(text=text, calls=calls, echo=echo):
            asked = sum(EACH + tokens(call.name) + tokens(call.arguments) for call in calls)
            return EACH + tokens(text) + asked + (tokens(echo.body) if echo else 0)
        case ToolMessage(text=text):
            return EACH + tokens(text)


class Window(Value):
    """What fits into one call of a model."""

    size: int
    """Tokens that the model can read and write at once."""
    answer: int
    """Of them, kept free for its answer."""
    threshold: float | None
    """The part of the rest from which on a conversation is summarised; None for never."""

    @classmethod
    def of(cls, size: int | None, answer: int | None, threshold: float | None) -> "Window":
        whole = size or UNKNOWN
        return cls(
            size=whole,
            answer=min(answer or max(whole // 8, 256), whole // 2),
            threshold=threshold,
        )

    @property
    def room(self) -> int:
        """Tokens for all that is sent."""
        return self.size - self.answer

    @property
    def limit(self) -> int | None:
        """Tokens from which on a conversation is summarised; None for never."""
        return None if self.threshold is None else int(self.room * self.threshold)


class Scale:
    """Corrects estimates by what a provider reported for the last call of the turn."""

    def __init__(self) -> None:
        self._factor = 1.0

    def learn(self, estimated: int, reported: int) -> None:
        # A report that is far off counts something else, such as only what was not cached.
        if estimated > 0 and 0.5 <= reported / estimated <= 2.0:
            self._factor = reported / estimated

    def __call__(self, estimated: int) -> int:
        return int(estimated * self._factor)
