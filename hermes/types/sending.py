"""Messages that a tool or `hermes send` sends to a chat. They are not the answer of a turn."""

from typing import Literal, Protocol

from hermes.types.value import Value

SendState = Literal["delivered", "queued", "refused"]
"""The state of a message and its files. `delivered`: the platform has accepted all of them.
`queued`: at least one of them is stored and still has to be sent. `refused`: at least one of them
was refused, and nothing is left to send."""


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
    """Why the message or one of its files was refused. `hermes send` also says here why a message
    is queued."""
    mirrored: bool = False
    """Whether the message is added to the history of the chat's session when it is delivered."""


class Messenger(Protocol):
    """Sends messages for a tool call."""

    async def others(self, to: str) -> tuple[str, ...]:
        """Returns the targets in the list `to` that are not the chat of this conversation. Raises
        ToolFailed if one of the targets can't be found."""
        ...

    async def send(
        self, to: str, text: str, files: tuple[OutgoingFile, ...] = (), *, mirror: bool
    ) -> tuple[SendResult, ...]:
        """Sends a message to each target in `to`, a list separated by commas. Returns the result
        for each target.

        If `mirror` is true, the message is added to the history of each chat's session, as a
        message of the agent. A call that is repeated after a crash sends nothing twice. Raises
        ToolFailed if one of the targets can't be used; the message is then sent to no target.
        """
        ...
