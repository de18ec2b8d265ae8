"""Estimates how much of a model's context a conversation takes, and what is left of it."""

from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    Message,
    ToolMessage,
    UserMessage,
)
from hermes.types.profile import ModelChoice
from hermes.types.value import Value

UNKNOWN_LENGTH = 128_000
"""Context length, in tokens, of a model whose length is not known."""
IMAGE_TOKENS = 1600
"""Tokens of an image: as many as the larger providers count for one of full size."""
SECOND_BYTES, SECOND_TOKENS = 16_000, 32
"""Bytes and tokens of one second of audio."""
PAGE_BYTES, PAGE_TOKENS = 100_000, 3000
"""Bytes and tokens of a page of a PDF file: its text, and an image of it."""
MESSAGE_TOKENS = 6
"""Tokens that a message costs besides its words."""


def context_length(choice: ModelChoice) -> int:
    """Tokens that the model can read and write in one call: the known number, or a usual one."""
    return choice.context_length or UNKNOWN_LENGTH


def tokens_in_bytes(size: int) -> int:
    """About as many tokens as a tokenizer would make of so many bytes; rather more than fewer.

    Two tokens for seven bytes: 3.5 letters of English, 1.75 of Cyrillic, one of Chinese.
    """
    return size * 2 // 7


def tokens(text: str) -> int:
    """About as many tokens as a tokenizer would make of the text; rather more than fewer."""
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    return tokens_in_bytes(size) + 1


def attachment_tokens(attachment: Attachment) -> int:
    """Tokens of one attachment, roughly."""
    match attachment.kind:
        case "image":
            return IMAGE_TOKENS
        case "audio" | "video":
            return (attachment.size // SECOND_BYTES + 1) * SECOND_TOKENS
        case "file":
            return (attachment.size // PAGE_BYTES + 1) * PAGE_TOKENS


def message_tokens(message: Message) -> int:
    """Tokens of one message."""
    match message:
        case UserMessage(text=text, sender=sender, attachments=attachments):
            said = MESSAGE_TOKENS + tokens(text) + tokens(sender or "")
            return said + sum(map(attachment_tokens, attachments))
        case AssistantMessage(text=text, calls=calls, echo=echo):
            asked = sum(
                MESSAGE_TOKENS + tokens(call.name) + tokens(call.arguments) for call in calls
            )
            return MESSAGE_TOKENS + tokens(text) + asked + (tokens(echo.body) if echo else 0)
        case ToolMessage(text=text):
            return MESSAGE_TOKENS + tokens(text)


class Window(Value):
    """What fits into one call of a model."""

    size: int
    """Tokens that the model can read and write at once."""
    answer: int
    """Of them, kept free for its answer."""
    threshold: float | None
    """The part of the rest from which on a conversation is summarised; None for never."""

    @classmethod
    def of(cls, size: int, answer: int | None, threshold: float | None) -> "Window":
        return cls(
            size=size,
            answer=min(answer or max(size // 8, 256), size // 2),
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


class EstimateCorrection:
    """Corrects estimates by what a provider reported for the last call of the turn."""

    def __init__(self) -> None:
        self._factor = 1.0

    def learn(self, estimated: int, reported: int) -> None:
        # A report that is far off counts something else, such as only what was not cached.
        if estimated > 0 and 0.5 <= reported / estimated <= 2.0:
            self._factor = reported / estimated

    def __call__(self, estimated: int) -> int:
        return int(estimated * self._factor)
