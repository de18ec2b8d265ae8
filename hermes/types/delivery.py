"""What we owe a chat."""

from typing import Literal

from hermes.types.identity import Target, TurnId
from hermes.types.messages import Content, MessageRef
from hermes.types.value import Value

DeliveryState = Literal["open", "ready", "sending", "delivered", "dead"]


class Placed(Value):
    """A part that stands on the platform, and the text it stands with."""

    ref: MessageRef
    text: str


class Delivery(Value):
    id: str
    target: Target
    state: DeliveryState
    content: Content
    turn: TurnId | None = None
    placed: tuple[Placed, ...] = ()
    """Parts that stand already: edited into the final text where the platform can edit."""
    attempts: int = 0
    not_before: float = 0.0
    doubtful: bool = False
    """A send may have reached the platform without our knowing."""
