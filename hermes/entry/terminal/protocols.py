"""The protocols of a terminal: it reads a person's input and has a screen for each answer."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from hermes.control.context_use import ContextUse
from hermes.types.events import AgentEvent

MARK = "› "
"""Stands before everything that the person types."""


class AnswerScreen(Protocol):
    """Shows one answer."""

    def show_question(self, text: str) -> None:
        """Shows a queued message above its answer, as if it had just been typed."""
        ...

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

    def show_context(self, use: ContextUse) -> None:
        """Updates the status line, if there is one."""
        ...

    def skip_suggestion(self, text: str) -> None:
        """Does not suggest a line that was typed: it is a command that failed."""
        ...

    def working(self) -> AbstractContextManager[None]:
        """Prepares the terminal for `read_ahead`, until the block ends."""
        ...

    async def read_ahead(
        self, send: Callable[[str], Awaitable[None]], stop: Callable[[], Awaitable[None]]
    ) -> None:
        """Reads keys while the agent works: sends complete lines, and calls `stop` for Esc.

        `read` begins with a line that is not complete.
        """
        ...

    async def read(self) -> str | None:
        """The next input of the person; None when they leave."""
        ...

    def leave(self) -> None:
        """Ends `read` as if the person had left."""
        ...
