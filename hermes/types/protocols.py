"""The protocols between the layers."""

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
"""Stores the event and returns. An entry point acknowledges a message only after this call."""
Emit = Callable[[AgentEvent], None]
"""Publishes an event without waiting."""


class Checkpoint(Protocol):
    """Stores the progress of a turn while the agent runs."""

    async def said(self, message: AssistantMessage) -> None:
        """Stores a message in which the model calls tools."""
        ...

    async def started(self, call: CallId, handle: str | None = None) -> None:
        """Stores that a call is about to run, with the handle of its command. This method is used
        for calls that must not run twice."""
        ...

    async def answered(self, message: ToolMessage) -> None: ...

    async def steered(self) -> Sequence[UserMessage]:
        """If people have sent messages while the turn runs (steering), adds these messages to the
        turn and returns them. Must be called between two steps, when every tool call has its
        result."""
        ...

    def prompted(self, prompt: Prompt) -> None:
        """Sets the session's new prompt, which is stored together with the next message."""
        ...

    def uses_files(self) -> None:
        """Records that the turn uses files of the agent. This fact is stored together with the next
        message. From then on, only nodes (machines) that have these files run the session."""
        ...

    async def compacted(self, first: int, last: int, summary: UserMessage) -> None:
        """Stores a summary that replaces the messages from `first` up to, but not including,
        `last`."""
        ...


class AgentRunner(Protocol):
    async def run(self, turn: Turn, emit: Emit, checkpoint: Checkpoint) -> Outcome: ...


class Toolbox(Protocol):
    """The tools that a turn may use, by name."""

    def for_turn(self, turn: Turn) -> Mapping[str, AnyTool]: ...


class MemoryProvider(Protocol):
    """A memory in addition to the notes in files. An agent has at most one such memory."""

    @property
    def name(self) -> str: ...

    def tools(self) -> Sequence[AnyTool]:
        """Returns the tools with which the agent uses the memory."""
        ...

    async def recall(self, turn: Turn) -> str:
        """Returns a short text that the model sees in this turn only, or "" if nothing is
        relevant."""
        ...

    async def on_session_end(self, ended: Turn) -> None:
        """This method is called after the conversation in `ended.history` has ended. A crash can
        cause further calls for the same conversation."""
        ...
