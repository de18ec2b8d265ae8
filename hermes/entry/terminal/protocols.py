"""The protocols of a terminal: it reads a person's input and has a screen for each answer."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from hermes.types.events import AgentEvent


class AnswerScreen(Protocol):
    """Shows one answer."""

    def show(self, event: AgentEvent) -> None: ...

    def show_reply(self, text: str) -> None:
        """Shows a reply of the gateway itself, outside any turn."""
        ...

    def remark(self, text: str) -> None:
        """Shows why there is no answer, or no more of it."""
        ...

    def note(self, text: str) -> None:
        """Shows a notice while the answer continues."""
        ...

    def draw(self) -> float:
        """Updates the screen; returns the seconds after which to call it again."""
        ...


class ChatTerminal(Protocol):
    """Reads what a person types, and shows answers."""

    def greet(self, title: str, notes: Sequence[str]) -> None: ...

    def remark(self, text: str) -> None:
        """Shows a line from Hermes, not from the agent."""
        ...

    def show_exchange(self, asked: str, answer: str) -> None:
        """Shows the last exchange of the session."""
        ...

    def new_screen(self) -> AnswerScreen: ...

    def working(self) -> AbstractContextManager[None]:
        """Shows that the agent is working, until the block ends."""
        ...

    async def read_ahead(self, say: Callable[[str], Awaitable[None]]) -> None:
        """Passes on lines sent while the agent works; `read` begins with an unfinished one."""
        ...

    async def read(self) -> str | None:
        """The next input of the person; None when they leave."""
        ...

    def leave(self) -> None:
        """Ends `read` as if the person had left."""
        ...
