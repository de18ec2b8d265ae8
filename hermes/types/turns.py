"""A turn, which is one run of the agent: its input and its possible outcomes."""

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
from hermes.types.people import Role
from hermes.types.profile import AgentProfile
from hermes.types.value import Value


class Approved(Value, tag=True):
    digest: str
    """Hash of everything that the approval is bound to: the action as the person saw it, and the
    place where it runs."""


class Denied(Value, tag=True):
    reason: str = ""


class Expired(Value, tag=True):
    """Nobody has answered in time."""


class Undelivered(Value, tag=True):
    """The question could not be sent to the chat, so nobody has seen it."""


class Cancelled(Value, tag=True):
    """The turn was stopped while the question was open."""


class Answered(Value, tag=True):
    text: str


Decision = Approved | Denied | Expired | Undelivered | Cancelled | Answered


class PromptPart(Value):
    """A named part of the system prompt."""

    name: str
    text: str


class Prompt(Value):
    """The system prompt of a session. It is stored and used in every turn. A new prompt is written
    only in some cases, for example after `/new`, after a summary, after a change of the model, and
    after an hour without a message."""

    fingerprint: str
    """Hash of the model, the tools and the persona that the prompt was made for."""
    parts: tuple[PromptPart, ...]
    tools: int = 0
    """Number of characters in the tools' declarations, which are sent in addition to the prompt."""
    window: int = 0
    """The model's context window in tokens."""

    @property
    def text(self) -> str:
        return "\n\n".join(part.text for part in self.parts)


class Turn(Value):
    """Everything that the agent needs to run a turn."""

    id: TurnId
    session: SessionKey
    agent: AgentId
    source: Source
    """The chat and the user that the message came from."""
    profile: AgentProfile
    history: tuple[Message, ...]
    """The messages of the conversation. The last message is the new message or, in a resumed turn,
    the message with the unanswered tool calls."""
    size: int = 0
    """Size of the stored history in bytes, without the new message; 0 if unknown."""
    trigger: Trigger = "message"
    person: PersonId | None = None
    role: Role = Role.USER
    """The role of the person, which decides which tools are offered."""
    principal: Principal | None = None
    """The identity that the entry point has authenticated; None for a chat platform."""
    place: str = ""
    """A sentence from the entry point that tells the model where the conversation takes place."""
    reply_to: Target | None = None
    stateless: bool = False
    """Whether the request belongs to no session."""
    prompt: Prompt | None = None
    """The session's prompt; None if a new prompt must be written."""
    instructions: str = ""
    personality: str = ""
    """Instructions of the personality that a person has chosen for the session."""
    summarise: bool = False
    """Whether the conversation is summarised before the first model call."""
    model: str | None = None
    reasoning: str | None = None
    """The reasoning effort that a person has chosen for the session. An effort in `sampling` takes
    precedence."""
    sampling: Sampling = Sampling()
    client_tools: tuple[ClientTool, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    requested_at: int = 0
    """The number of the first step (model call) after the client's last request. `tool_choice`
    applies only to this step."""
    response_format: ResponseFormat | None = None
    """The format of the final answer; None for plain text."""
    decisions: dict[CallId, Decision] = msgspec.field(default_factory=dict)
    interrupted: frozenset[CallId] = frozenset()
    """Tool calls that were running when the former process of this turn died. Their outcome is
    unknown."""
    steps: int = 0
    """Number of model calls that this turn has already made."""
    live: bool = True
    """Whether somebody reads the answer while it is written."""


QuestionKind = Literal["question", "approval"]


class Question(Value):
    """A question for a person. The turn is suspended until the question is answered or expires."""

    call: CallId
    kind: QuestionKind
    prompt: str
    choices: tuple[str, ...] = ()
    """Answers to choose from. The choices of an approval are ways to approve; Deny is added when
    the question is shown."""
    detail: str = ""
    """The exact action that an approval permits, as the question shows the action: for example, a
    resolved command."""
    reason: str = ""
    """Why the action needs approval, as a sentence without a final period."""
    digest: str = ""
    """Hash of the action, of the place where it runs, and of the session. If this hash has changed
    when the action is about to run, the approval is not valid."""
    lasting_digest: str = ""
    """Hash like `digest`, but without the session. It is stored if the person approves the action
    for all sessions."""
    expires_in: float = 3600.0
    """Seconds after which the question expires."""


class Completed(Value, tag=True):
    message: AssistantMessage


class Suspended(Value, tag=True):
    questions: tuple[Question, ...]
    calls: tuple[ToolCall, ...] = ()
    """Calls of client tools whose results are missing."""


class Stopped(Value, tag=True):
    reason: str
    partial: str = ""
    """The text of the unfinished model call: what the model had written when the turn was
    stopped."""


class Failed(Value, tag=True):
    reason: str
    """One plain sentence that tells the person what failed and what to do."""
    code: str = "agent_error"
    """Identifies the problem for programs."""
    status: int = 500
    """The HTTP status of an API request whose turn has this outcome."""
    retry_after: float | None = None
    """Seconds after which a new attempt makes sense; None if unknown."""
    temporary: bool = False
    """Whether the same request may succeed later. If so, a client can repeat the request with the
    same idempotency key, and the request is run again."""

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
