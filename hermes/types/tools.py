"""A tool as the model sees it and as the agent runs it."""

from collections.abc import Awaitable, Callable
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from hermes.types.client_tools import ClientTool
from hermes.types.errors import ToolFailed
from hermes.types.execution import Sandbox
from hermes.types.identity import CallId
from hermes.types.messages import ToolCall
from hermes.types.turns import Decision, Question, Turn
from hermes.types.value import Value

A = TypeVar("A", bound=msgspec.Struct)
Risk = Literal["low", "medium", "high"]
"""The harm that a wrong call can do: hardly any, to the workspace's files, or to anything."""


class ToolContext(Protocol):
    """The information and services that a running tool can use."""

    @property
    def turn(self) -> Turn: ...
    @property
    def call(self) -> CallId: ...
    @property
    def sandbox(self) -> Sandbox:
        """The files and commands of the turn's session."""
        ...

    @property
    def decision(self) -> Decision | None:
        """A person's decision, when the call was suspended on a question."""
        ...

    async def started(self, handle: str) -> None:
        """Commits the handle of a command before it begins, so that a restart can end it."""
        ...

    def progress(self, text: str) -> None:
        """Shows people how far the call has come. Secrets are redacted."""
        ...

    async def show_change(self, path: str, before: str, after: str) -> None:
        """Shows people how the call changed a text file, as a short diff.

        Secrets are redacted. Of a file that is there to hold secrets, and of a very long one,
        nothing is shown.
        """
        ...

    def redact(self, text: str) -> str:
        """The text without secrets. Results are redacted anyway: call it before you cut a text,
        because half a secret is not recognised."""
        ...


BoundCall = Callable[[ToolContext], Awaitable[str]]
"""A tool call with its arguments, ready to run."""


class AnyTool(Protocol):
    """A tool whatever its arguments are. Every `Tool` is one."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def arguments(self) -> type[msgspec.Struct]: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def repeatable(self) -> bool: ...
    @property
    def toolset(self) -> str: ...
    @property
    def risk(self) -> Risk: ...

    def bind(self, arguments: str) -> BoundCall:
        """The call with the model's JSON arguments; ToolFailed if they are not valid."""
        ...


class Tool(Value, Generic[A]):
    name: str
    description: str
    """For the model; the first line is also for people."""
    arguments: type[A]
    """The declaration is the JSON schema and the validator."""
    handler: Callable[[ToolContext, A], Awaitable[str]]
    read_only: bool = False
    """Changes nothing: calls of one step run side by side."""
    repeatable: bool = False
    """May run again after a crash without doing harm."""
    toolset: str = ""
    """The set it belongs to."""
    risk: Risk = "low"

    def bind(self, arguments: str) -> BoundCall:
        """The call with the model's JSON arguments; ToolFailed if they are not valid."""
        try:
            decoded = msgspec.json.decode(arguments or "{}", type=self.arguments)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ToolFailed(f"The arguments of {self.name} are not valid: {error}.") from error
        return lambda context: self.handler(context, decoded)


DeclaredTool = AnyTool | ClientTool
"""A tool that a model may call, whoever runs it."""


class NeedsPerson(Exception):
    """Raised by a tool whose call only a person can let go on."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.prompt)
        self.question = question


class NeedsClient(Exception):
    """Raised for a call of a client tool, which only the client can run."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(call.name)
        self.call = call
