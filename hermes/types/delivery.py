"""Messages that we owe a chat."""

from typing import Literal

from hermes.types.identity import Target, TurnId
from hermes.types.messages import Content, MessageRef
from hermes.types.value import Value

DeliveryState = Literal["open", "ready", "sending", "delivered", "dead"]
Purpose = Literal["place", "send", "replace", "repeat"]
"""Why a message is sent: to be edited into the final one, as the final one, in place of one that
is gone, or to say that the next one may be a repeat."""


class Placed(Value):
    """A message of a delivery on the platform, with the rendered text that it shows."""

    ref: MessageRef
    text: str
    final: bool = False
    """It shows its final content, and is not changed any more."""


class Delivery(Value):
    id: str
    target: Target
    state: DeliveryState
    content: Content
    turn: TurnId | None = None
    placed: tuple[Placed, ...] = ()
    """Messages on the platform; edited into the final text where the platform can edit."""
    attempts: int = 0
    not_before: float = 0.0
    doubtful: bool = False
    """A message may have been sent although we have no confirmation."""

    def key(self, part: int, purpose: Purpose) -> str:
        """The key of a message to send: the same after a retry and after a restart."""
        return f"{self.id}.{part}.{purpose}"
