"""Estimates how many tokens a conversation takes, and how many fit into a model's context."""

from hermes.types.messages import (
    AssistantMessage,
    Attachment,
    Message,
    ToolMessage,
    UserMessage,
)
from hermes.types.value import Value

IMAGE_TOKENS = 1600
"""Estimated number of tokens of an image. The larger providers charge this number for a full-size
image."""
SECOND_BYTES, SECOND_TOKENS = 16_000, 32
"""Estimated number of bytes (first number) and tokens (second number) of one second of audio."""
PAGE_BYTES, PAGE_TOKENS = 100_000, 3000
"""Estimated number of bytes (first number) and tokens (second number) of a PDF page. A page has
many tokens, because it is sent both as text and as an image."""
MESSAGE_TOKENS = 6
"""Estimated number of tokens that each message needs in addition to its text."""


def tokens_in_bytes(size: int) -> int:
    """Estimates the number of tokens in a text of `size` bytes. The estimate tends to be too
    high.

    It counts two tokens for seven bytes. A token is about 3.5 letters of English, 1.75 letters of
    Cyrillic, or one Chinese character.
    """
    return size * 2 // 7


def tokens(text: str) -> int:
    """Estimates the number of tokens in a text. The estimate tends to be too high."""
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    return tokens_in_bytes(size) + 1


def attachment_tokens(attachment: Attachment) -> int:
    """Estimates the tokens of one attachment."""
    match attachment.kind:
        case "image":
            return IMAGE_TOKENS
        case "audio" | "video":
            return (attachment.size // SECOND_BYTES + 1) * SECOND_TOKENS
        case "file":
            return (attachment.size // PAGE_BYTES + 1) * PAGE_TOKENS


def message_tokens(message: Message) -> int:
    """Estimates the tokens of one message."""
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
    """The context window of a model, and how it is divided between the input and the answer."""

    size: int
    """Tokens of the whole window, for input and output."""
    answer: int
    """Tokens that are reserved for the answer."""
    threshold: float | None
    """The share of `room` at which a conversation is summarised; None to never summarise."""

    @classmethod
    def of(cls, size: int, answer: int | None, threshold: float | None) -> "Window":
        return cls(
            size=size,
            answer=min(answer or max(size // 8, 256), size // 2),
            threshold=threshold,
        )

    @property
    def room(self) -> int:
        """Number of tokens that are available for the input."""
        return self.size - self.answer

    @property
    def limit(self) -> int | None:
        """The number of tokens at which a conversation is summarised; None to never summarise."""
        return None if self.threshold is None else int(self.room * self.threshold)


class EstimateCorrection:
    """Corrects estimates with the usage that the provider reported for the last call of the
    turn."""

    def __init__(self) -> None:
        self._factor = 1.0

    def learn(self, estimated: int, reported: int) -> None:
        # Some providers report only the tokens that were not cached. So a number that differs much
        # from the estimate is ignored.
        if estimated > 0 and 0.5 <= reported / estimated <= 2.0:
            self._factor = reported / estimated

    def __call__(self, estimated: int) -> int:
        return int(estimated * self._factor)
