"""The seams: each can be faked in ten lines."""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

from hermes.types.events import AgentEvent
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Message,
    MessageEvent,
    Receipt,
    Sampling,
    ToolMessage,
    UserMessage,
)
from hermes.types.profile import ModelChoice
from hermes.types.tools import Process, Tool
from hermes.types.turns import Outcome, Prompt, Turn
from hermes.types.value import Value

T = TypeVar("T")
P = ParamSpec("P")

Accept = Callable[[MessageEvent], Awaitable[Receipt]]
"""Returns once the event is durable: acknowledge only after."""
Emit = Callable[[AgentEvent], None]
"""Never waits."""


# --- the store -------------------------------------------------------------------------------

Row = tuple[Any, ...]
Statement = tuple[str, Sequence[Any]]
Work = Generator[Statement, list[Row], T]
"""One transaction: yields statements, receives rows, returns its result. No await inside."""


class Store(Protocol):
    @property
    def trouble(self) -> str | None:
        """Why the last commit failed; None while commits succeed."""
        ...

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Commits `transaction(*args, **kwargs)`, or raises an error and changes nothing.

        The function is called again if its transaction has to be retried.
        """
        ...

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs `transaction(*args, **kwargs)`, which must not write, on one snapshot."""
        ...


# --- models ----------------------------------------------------------------------------------


class ModelRequest(Value):
    choice: ModelChoice
    system: str
    """The same for a whole epoch: providers cache it."""
    messages: Sequence[Message]
    step: str
    """Prefix of the CallIds of this answer: `<turn>_<step>`."""
    tools: Sequence[Tool] = ()
    sampling: Sampling = Sampling()
    ephemeral: str = ""
    """Said behind `system`, for this call only."""
    live: bool = True
    """Emit each word as it comes; otherwise a few times a second will do."""
    conversation: str = ""
    """Names what this goes on with, where there is something: for caches only."""


class ModelProvider(Protocol):
    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Streams to `emit`, returns the whole message. Raises one of our errors."""
        ...


# --- the agent -------------------------------------------------------------------------------


class Checkpoint(Protocol):
    """What the agent makes durable while it runs."""

    async def said(self, message: AssistantMessage) -> None:
        """The model asked for tools."""
        ...

    async def started(self, call: CallId, process: Process | None = None) -> None:
        """A call that must not run twice is about to run."""
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

    def for_turn(self, turn: Turn) -> Mapping[str, Tool]: ...


# --- memory ----------------------------------------------------------------------------------


class MemoryProvider(Protocol):
    """A memory beside the notes in files; there is one at a time."""

    @property
    def name(self) -> str: ...

    def tools(self) -> Sequence[Tool]:
        """What the agent may use of it."""
        ...

    async def recall(self, turn: Turn) -> str:
        """What the model is shown for this turn only; short, and empty where nothing fits."""
        ...

    async def on_session_end(self, ended: Turn) -> None:
        """The conversation in `ended.history` is over. Called once or more."""
        ...
