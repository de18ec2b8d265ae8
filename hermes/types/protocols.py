"""The seams: each can be faked in ten lines."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from hermes.types.events import AgentEvent
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    MessageEvent,
    Receipt,
    ToolMessage,
    UserMessage,
)
from hermes.types.tools import AnyTool
from hermes.types.turns import Outcome, Prompt, Turn

Accept = Callable[[MessageEvent], Awaitable[Receipt]]
"""Returns once the event is durable: acknowledge only after."""
Emit = Callable[[AgentEvent], None]
"""Never waits."""


# --- the agent -------------------------------------------------------------------------------


class Checkpoint(Protocol):
    """What the agent makes durable while it runs."""

    async def said(self, message: AssistantMessage) -> None:
        """The model asked for tools."""
        ...

    async def started(self, call: CallId, handle: str | None = None) -> None:
        """A call that must not run twice is about to run, or a command of it with this handle."""
        ...

    async def answered(self, message: ToolMessage) -> None: ...

    def prompted(self, prompt: Prompt) -> None:
        """A new epoch begins with this prompt; kept with the next thing that is."""
        ...

    async def compacted(self, first: int, last: int, summary: UserMessage) -> None:
        """The summary stands for the messages from `first` up to `last`, not included."""
        ...


class AgentRunner(Protocol):
    async def run(self, turn: Turn, emit: Emit, checkpoint: Checkpoint) -> Outcome: ...


class Toolbox(Protocol):
    """The tools that a turn may use, by name."""

    def for_turn(self, turn: Turn) -> Mapping[str, AnyTool]: ...


# --- memory ----------------------------------------------------------------------------------


class MemoryProvider(Protocol):
    """A memory beside the notes in files; there is one at a time."""

    @property
    def name(self) -> str: ...

    def tools(self) -> Sequence[AnyTool]:
        """What the agent may use of it."""
        ...

    async def recall(self, turn: Turn) -> str:
        """What the model is shown for this turn only; short, and empty where nothing fits."""
        ...

    async def on_session_end(self, ended: Turn) -> None:
        """The conversation in `ended.history` is over. Called once or more."""
        ...
