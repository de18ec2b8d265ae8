"""Messages that must be sent to a chat."""

from typing import Literal

from hermes.types.identity import Target, TurnId
from hermes.types.messages import Content, MessageRef
from hermes.types.value import Value

DeliveryState = Literal["open", "ready", "sending", "delivered", "dead"]
Purpose = Literal["place", "send", "replace", "repeat"]
"""The reason for sending a message. `place` is a preview, which is edited later. `send` is a final
message. `replace` is sent instead of a message that was deleted. `repeat` is a warning that the
next message may be a duplicate."""


class Placed(Value):
    """A message that a delivery has sent to the platform, with the rendered text that it shows."""

    ref: MessageRef
    text: str
    final: bool = False
    """Whether the message shows its final content, which is not edited again."""
    plain: bool = False
    """Whether the platform has refused the rendered text, so that the message shows plain text."""


class Delivery(Value):
    id: str
    target: Target
    state: DeliveryState
    content: Content
    turn: TurnId | None = None
    placed: tuple[Placed, ...] = ()
    """The messages of this delivery that are on the platform. If the platform can edit messages,
    these messages are edited until they show the final text."""
    attempts: int = 0
    not_before: float = 0.0
    doubtful: bool = False
    """Whether a message may have been sent although the platform has not confirmed it."""
    send_key: str | None = None
    """The idempotency key of a message that is not the answer of a turn."""
    session: str | None = None
    """The session whose history receives the message after it was sent."""

    def key(self, part: int, purpose: Purpose) -> str:
        """Returns the idempotency key of a message. It stays the same after a retry or a
        restart."""
        return f"{self.id}.{part}.{purpose}"
