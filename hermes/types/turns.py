"""One run of the agent: what it is given, and how it can end."""

from typing import Literal

import msgspec

from hermes.types.client_tools import ClientTool, ToolChoice
from hermes.types.errors import HermesError
from hermes.types.identity import (
    AgentId,
    CallId,
    PersonId,
    Principal,
    SessionKey,
    Source,
    Target,
    Trigger,
    TurnId,
)
from hermes.types.messages import AssistantMessage, Message, ResponseFormat, Sampling, ToolCall
from hermes.types.profile import AgentProfile
from hermes.types.value import Value


class Approved(Value, tag=True):
    digest: str
    """Of exactly what was shown; anything else is not approved."""


class Denied(Value, tag=True):
    reason: str = ""


class Expired(Value, tag=True):
    pass


class Answered(Value, tag=True):
    text: str


Decision = Approved | Denied | Expired | Answered


class PromptPart(Value):
    """A piece of what the model is told before the conversation."""

    name: str
    text: str


class Prompt(Value):
    """What the model is told before the conversation, the same for a whole epoch."""

    fingerprint: str
    """Of the model, the tools and the persona that it was made for."""
    parts: tuple[PromptPart, ...]
    tools: int = 0
    """Characters of the tools' descriptions, which are sent beside it."""
    window: int = 0
    """Tokens that the model can read at once."""

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.parts)


class Turn(Value):
    """Everything the agent needs, by value."""

    id: TurnId
    session: SessionKey
    agent: AgentId
    source: Source
    """Who asked, and where."""
    profile: AgentProfile
    history: tuple[Message, ...]
    """Ends with the new message, or, when resumed, in unanswered tool calls."""
    size: int = 0
    """Bytes of the history in the store, without the new message; 0 where they are not known."""
    trigger: Trigger = "message"
    person: PersonId | None = None
    principal: Principal | None = None
    """The identity that the entry point has authenticated; None for a chat platform."""
    place: str = ""
    """The entry point's sentence for the model about where the conversation takes place."""
    reply_to: Target | None = None
    stateless: bool = False
    """A request that belongs to no session."""
    prompt: Prompt | None = None
    """The epoch's; None where a new one begins."""
    instructions: str = ""
    model: str | None = None
    sampling: Sampling = Sampling()
    client_tools: tuple[ClientTool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    requested_at: int = 0
    """The step of the first model call after the last request, which `tool_choice` binds."""
    response_format: ResponseFormat | None = None
    """The form of the final answer; None for plain text."""
    decisions: dict[CallId, Decision] = msgspec.field(default_factory=dict)
    interrupted: frozenset[CallId] = frozenset()
    """Calls that had started when the process died: their outcome is unknown."""
    steps: int = 0
    """Model calls already made in this turn."""
    live: bool = True
    """Somebody reads along word by word."""


QuestionKind = Literal["question", "approval"]


class Question(Value):
    """Something only a person can decide; the turn is suspended on it."""

    call: CallId
    kind: QuestionKind
    prompt: str
    choices: tuple[str, ...] = ()
    """Answers to choose from. The choices of an approval are ways to approve; Deny is added when
    it is shown."""
    digest: str = ""
    """Of what an approval would run."""
    expires_in: float = 3600.0
    """Seconds."""


class Completed(Value, tag=True):
    message: AssistantMessage


class Suspended(Value, tag=True):
    questions: tuple[Question, ...]
    calls: tuple[ToolCall, ...] = ()
    """Calls of client tools, which wait for their results."""


class Stopped(Value, tag=True):
    reason: str
    partial: str = ""
    """What had been said of the segment that was cut."""


class Failed(Value, tag=True):
    reason: str
    """One plain sentence for the person, with what to do."""
    code: str = "agent_error"
    """Names the problem for programs."""
    status: int = 500
    """The HTTP status of an API request whose turn failed like this."""
    retry_after: float | None = None
    """Seconds after which a new attempt makes sense; None when that is not known."""
    temporary: bool = False
    """Whether the same request may succeed later: with an idempotency key, it is run again."""

    @classmethod
    def of(cls, error: HermesError) -> "Failed":
        return cls(
            reason=str(error),
            code=error.code,
            status=error.status,
            retry_after=error.retry_after,
            temporary=error.temporary,
        )


Outcome = Completed | Suspended | Stopped | Failed
