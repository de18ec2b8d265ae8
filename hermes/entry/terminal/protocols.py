"""The protocols of a terminal, which reads a person's input, and of a screen, which shows one
answer."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from hermes.control.context_use import ContextUse
from hermes.types.events import AgentEvent

MARK = "› "
"""The prompt before everything that the person types."""
ESCAPE_SECONDS = 0.1
"""Some keys send several bytes, of which Esc is the first. The other bytes follow within this
number of seconds."""


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
        """Shows the reason why there is no answer, or why it is incomplete."""
        ...

    def note(self, text: str) -> None:
        """Shows a notice while the answer continues."""
        ...

    def draw(self) -> float:
        """Updates the screen. Returns the seconds until the next call."""
        ...


class ChatTerminal(Protocol):
    """Reads a person's input, and shows answers."""

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
        """Stops suggesting a line, because it is a command that failed."""
        ...

    def working(self) -> AbstractContextManager[None]:
        """Prepares the terminal for `read` and `read_ahead`, until the block ends."""
        ...

    async def read_ahead(
        self, send: Callable[[str], Awaitable[None]], stop: Callable[[], Awaitable[None]]
    ) -> None:
        """Reads keys while the agent works. Sends complete lines, and calls `stop` for Esc.

        An incomplete line becomes the beginning of the next `read`.
        """
        ...

    async def read(self, escape: str = "") -> str | None:
        """Returns the next input of the person, or None when the person leaves. The Esc key enters
        the text `escape`, if it is not empty and the person has typed nothing."""
        ...

    def leave(self) -> None:
        """Ends `read` as if the person had left."""
        ...
