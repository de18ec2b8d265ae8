"""What a conversation needs of a terminal: a place to read, and a screen for each answer."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from hermes.types.events import AgentEvent


class AnswerScreen(Protocol):
    """Where one answer is shown."""

    def show(self, event: AgentEvent) -> None: ...

    def tell(self, text: str) -> None:
        """What the gateway answers itself, outside any turn."""
        ...

    def remark(self, text: str) -> None:
        """The last word where there is no answer, or no more of it."""
        ...

    def note(self, text: str) -> None:
        """What is said while the answer goes on."""
        ...

    def draw(self) -> float:
        """Brings it up to date; in how many seconds it wants to be called again."""
        ...


class ChatTerminal(Protocol):
    """Where a person reads and types."""

    def greet(self, title: str, notes: Sequence[str]) -> None: ...

    def remark(self, text: str) -> None:
        """A line of ours, not of the agent's."""
        ...

    def recall(self, asked: str, answer: str) -> None:
        """Shows what was said before."""
        ...

    def new_screen(self) -> AnswerScreen: ...

    def working(self) -> AbstractContextManager[None]:
        """The agent works inside the block."""
        ...

    async def overhear(self, say: Callable[[str], Awaitable[None]]) -> None:
        """Hands on what is sent while the agent works; a line not sent is for the next `read`."""
        ...

    async def read(self) -> str | None:
        """What the person types; None when they leave."""
        ...

    def leave(self) -> None:
        """Ends `read` as if they had left."""
        ...
