"""Messages that are sent to a chat on purpose, and not as the answer to a turn."""

from typing import Literal, Protocol

from hermes.types.value import Value

SendState = Literal["delivered", "queued", "refused"]
"""`queued` means that the message is stored and will be sent, or that its file still waits."""


class OutgoingFile(Value):
    """A file to send."""

    name: str
    data: bytes


class SendResult(Value):
    """The result of sending a message to one target."""

    target: str
    """The target as text, such as `telegram:-1001234567890`."""
    state: SendState
    reason: str = ""
    """Why the message or one of its files was refused, or why it waits."""
    mirrored: bool = False
    """Whether the message is added to the history of the chat's session when it is delivered."""


class Messenger(Protocol):
    """Sends messages for a tool call."""

    async def send(
        self, to: str, text: str, files: tuple[OutgoingFile, ...] = (), *, mirror: bool
    ) -> tuple[SendResult, ...]:
        """Sends a message to one or more targets, separated by commas, and returns the result for
        each.

        `mirror` adds the message to the history of each target's session, as a message of the
        agent. A call that is repeated after a crash sends nothing twice. Raises ToolFailed if a
        target can't be used. Nothing is sent then.
        """
        ...
