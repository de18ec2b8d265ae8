"""The records that the fake Bot API of Telegram keeps for tests."""

from collections.abc import Mapping

from hermes.testing.telegram_html import FormattedText
from hermes.testing.telegram_parameters import InlineKeyboard
from hermes.types.value import Value

BotToken = str
ApiObject = dict[str, object]
"""A JSON object of the Bot API."""


class ApiRefusal(Exception):
    """The refusal of a call, with an HTTP status and a description."""

    def __init__(self, status: int, description: str, **parameters: int | None) -> None:
        super().__init__(description)
        self.status = status
        self.parameters = {name: one for name, one in parameters.items() if one is not None}


class ScriptedFailure(Value):
    """The way in which one call fails."""

    status: int = 0
    """The HTTP status; 0 if the connection is cut without an answer."""
    description: str = "Internal Server Error"
    retry_after: int | None = None
    after: float = 0.0
    """Number of seconds that the server waits before the call fails."""
    done: bool = False
    """Whether the server carries out the call before the failure, so that only the answer is
    lost."""


class ApiCall(Value):
    """A call that the server received."""

    at: float
    token: BotToken
    method: str
    parameters: Mapping[str, object]
    status: int


class BotMessage(Value):
    """A message that a bot has sent."""

    id: int
    chat: int
    token: BotToken
    thread: int | None = None
    source: str = ""
    """The text with its markup, as it was sent."""
    shown: FormattedText = FormattedText(text="")
    keyboard: InlineKeyboard | None = None
    file: str | None = None
    """The name of the attached file."""
    versions: tuple[str, ...] = ()
    """All visible texts that the message has had, oldest first."""
