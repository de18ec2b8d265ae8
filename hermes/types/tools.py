"""Tools: their declaration for the model, and their execution by the agent."""

from collections.abc import Awaitable, Callable
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from hermes.types.approvals import ProposedAction
from hermes.types.client_tools import ClientTool
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandPlace, Sandbox
from hermes.types.identity import CallId
from hermes.types.messages import ToolCall
from hermes.types.sending import Messenger, OutgoingFile
from hermes.types.turns import Decision, Question, Turn
from hermes.types.value import Value

A = TypeVar("A", bound=msgspec.Struct)
Risk = Literal["low", "medium", "high"]
"""The harm that a wrong call can do. `low` means hardly any harm, `medium` means harm to the
workspace's files, and `high` means harm to anything that the agent can reach."""


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
        """A person's decision, if the call was suspended on a question."""
        ...

    @property
    def messenger(self) -> Messenger:
        """Sends messages to chats."""
        ...

    async def started(self, handle: str) -> None:
        """Commits the handle of a command before the command starts, so that the command can be
        ended after a restart."""
        ...

    def progress(self, text: str) -> None:
        """Shows people the progress of the call. Secrets are redacted."""
        ...

    async def show_change(self, path: str, before: str, after: str) -> None:
        """Shows people how the call changed a text file, as a short diff.

        Secrets are redacted. Nothing is shown for a very long file, or for a file that usually
        holds secrets.
        """
        ...

    @property
    def place(self) -> CommandPlace | None:
        """The place that a person has approved for the command of this call: the backend, the
        folder, the environment and the scripts. The command must run in exactly this place. None if
        the call needed no approval."""
        ...

    @property
    def outgoing(self) -> dict[str, OutgoingFile]:
        """The files that the call sends, by path. They are read when the call is reviewed, so that
        a person approves exactly what is sent."""
        ...

    def knows_file(self, path: str) -> bool:
        """Returns whether the model has read or written this file in the conversation."""
        ...

    def was_mentioned(self, text: str) -> bool:
        """Returns whether exactly this text is in a message of a person, or in a tool result that
        others have written, such as a web page."""
        ...

    def redact(self, text: str) -> str:
        """Returns the text without secrets. Results are redacted automatically. Call this method
        only before you cut a text, because a part of a secret would not be recognized
        afterwards."""
        ...


class BoundCall(Value):
    """A tool call with its arguments."""

    run: Callable[[ToolContext], Awaitable[str]]
    review: Callable[[ToolContext], Awaitable[ProposedAction | None]]
    """Describes the action of the call, so that a person can approve the action. Returns None if
    the call never needs approval. This function is called before `run`, and changes nothing."""


class AnyTool(Protocol):
    """A tool with any type of arguments. Every `Tool` is an `AnyTool`."""

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
    def uses_files(self) -> bool: ...
    @property
    def untrusted(self) -> bool: ...
    @property
    def toolset(self) -> str: ...
    @property
    def risk(self) -> Risk: ...

    def bind(self, arguments: str) -> BoundCall:
        """Returns the call with its JSON arguments. Raises ToolFailed if they are invalid."""
        ...


class Tool(Value, Generic[A]):
    name: str
    description: str
    """The description for the model. Its first line is also shown to people."""
    arguments: type[A]
    """The type of the arguments. The JSON schema is derived from it, and calls are validated
    against it."""
    handler: Callable[[ToolContext, A], Awaitable[str]]
    review: Callable[[ToolContext, A], Awaitable[ProposedAction | None]] | None = None
    """Describes the action of a call, so that a person can approve the action before the call runs.
    None if the tool needs no approvals."""
    read_only: bool = False
    """Whether the tool changes nothing. Read-only calls of one step run concurrently."""
    repeatable: bool = False
    """Whether the tool may run again after a crash without doing harm."""
    uses_files: bool = True
    """Whether the tool may read or write files of the agent, for example in the sandbox. A session
    whose tools have used files is run only by nodes that have these files."""
    untrusted: bool = False
    """Whether the results contain text by others, such as web pages, which may try to instruct the
    model."""
    toolset: str = ""
    """Name of the toolset that the tool belongs to."""
    risk: Risk = "low"

    def bind(self, arguments: str) -> BoundCall:
        """Returns the call with its JSON arguments. Raises ToolFailed if they are invalid."""
        try:
            decoded = msgspec.json.decode(arguments or "{}", type=self.arguments)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ToolFailed(f"The arguments of {self.name} are not valid: {error}.") from error
        return BoundCall(
            run=lambda context: self.handler(context, decoded),
            review=lambda context: self._reviewed(context, decoded),
        )

    async def _reviewed(self, context: ToolContext, arguments: A) -> ProposedAction | None:
        return None if self.review is None else await self.review(context, arguments)


DeclaredTool = AnyTool | ClientTool
"""A tool that a model may call. The agent or the client runs it."""


class NeedsPerson(Exception):
    """Raised by a tool whose call needs a person's decision."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.prompt)
        self.question = question


class NeedsClient(Exception):
    """Raised for a call of a client tool, which only the client can run."""

    def __init__(self, call: ToolCall) -> None:
        super().__init__(call.name)
        self.call = call
