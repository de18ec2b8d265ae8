"""Types for calls to models, shared by the agent, the HTTP client and the wire formats."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from hermes.types.client_tools import ToolChoice
from hermes.types.events import UsageReported
from hermes.types.messages import (
    AssistantMessage,
    AttachmentKind,
    CutReason,
    Message,
    ResponseFormat,
    Sampling,
)
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit
from hermes.types.tools import DeclaredTool
from hermes.types.value import Value


class ModelRequest(Value):
    """One call of a model."""

    choice: ModelChoice
    system: str
    """The system prompt. It stays the same for many turns, so that providers can cache it."""
    messages: Sequence[Message]
    step: str
    """Prefix of the `CallId` of each tool call in the model's answer: `<turn>_<step>`."""
    tools: Sequence[DeclaredTool] = ()
    tool_choice: ToolChoice = ToolChoice()
    sampling: Sampling = Sampling()
    response_format: ResponseFormat | None = None
    """The format of an answer that makes no tool calls; None for plain text."""
    ephemeral: str = ""
    """Text that is added after `system`, in this call only."""
    live: bool = True
    """Whether to emit each word as it arrives. If this is False, text is emitted a few times a
    second."""
    conversation: str = ""
    """Identifies the conversation that this call continues. Only caches use it."""
    media: Mapping[str, bytes] = msgspec.field(default_factory=dict)
    """Maps the path of each attachment in `messages` to the attachment's content in base64.
    `ModelClient` fills this field before the wire format builds the request."""


class ModelProvider(Protocol):
    """Calls models. One implementation calls models over HTTP, another runs a model on this
    machine, and another repeats failed calls."""

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        """Streams the answer to `emit` and returns it. Raises a HermesError if the call fails."""
        ...


class CallBuilder(Protocol):
    """A tool call whose arguments are still arriving."""

    name: str
    arguments: list[str]
    """The pieces of the JSON text that have arrived so far."""


class AnswerBuilder(Protocol):
    """Collects an answer while a stream parser reads it."""

    finished: bool
    """Whether the model has reported the end of its answer. The parser sets this field. If it is
    still False when the stream ends, the connection was lost."""
    cut: CutReason
    """Why the model was stopped: a token limit or a content filter. The parser sets this field."""
    usage: UsageReported | None
    echo: bytes
    """JSON that must be sent back to the provider unchanged, with the results of the tools."""

    @property
    def choice(self) -> ModelChoice: ...

    @property
    def parts(self) -> int:
        """Number of parts that have begun. The text is one part, and so is each call."""
        ...

    def say(self, text: str) -> None:
        """Adds text to the answer."""
        ...

    def think(self, text: str) -> None:
        """Adds text to the reasoning."""
        ...

    def call(self, name: str = "") -> CallBuilder:
        """Adds a tool call. Calls that have no name by the end of the answer are dropped."""
        ...


class StreamParser(Protocol):
    """Parses one answer of a model."""

    def take(self, payload: bytes) -> None:
        """Parses the payload of one server-sent event, or an answer that was not streamed.

        Raises a HermesError if the payload reports an error, and ValueError or msgspec.DecodeError
        if the payload is malformed.
        """
        ...


class WireFormat(Protocol):
    """One wire format, such as chat completions. It does no I/O.

    The HTTP client posts `body(request)` to `url(choice)` with `headers(choice)`, and passes every
    payload of the response to the parser. The `choice` holds everything that is specific to a
    vendor.
    """

    @property
    def name(self) -> str:
        """Name of the format in `model.wire` and in the table of providers."""
        ...

    @property
    def attachments(self) -> frozenset[AttachmentKind]:
        """Kinds of attachments that a request can carry."""
        ...

    def url(self, choice: ModelChoice) -> str:
        """Returns the URL that requests are posted to."""
        ...

    def list_url(self, choice: ModelChoice) -> str:
        """Returns the URL of the list of models."""
        ...

    def headers(self, choice: ModelChoice) -> Mapping[str, str]:
        """Returns the headers of a request, with the API key if there is one."""
        ...

    def declare(self, tool: DeclaredTool) -> Mapping[str, object]:
        """Returns the declaration of a tool, which is sent as JSON."""
        ...

    def ignored_options(self, choice: ModelChoice, sampling: Sampling) -> Collection[str]:
        """Returns the names of the options in `sampling` that `body` does not send to this
        model."""
        ...

    def body(self, request: ModelRequest) -> bytes:
        """Returns the body of a request. It begins with the same bytes as the body of the previous
        call in the conversation, so that the provider can cache them."""
        ...

    def parser(self, answer: AnswerBuilder) -> StreamParser:
        """Returns a parser that fills in the answer."""
        ...
