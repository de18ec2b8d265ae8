"""What is said: inbound events, transcript messages, outbound content."""

from typing import Literal

from hermes.types.client_tools import ClientTool, ToolChoice
from hermes.types.identity import CallId, Principal, Source, Target, Trigger
from hermes.types.value import Value

AttachmentKind = Literal["image", "audio", "video", "file"]


class Attachment(Value):
    """A file that came with a message, or that is sent with one."""

    kind: AttachmentKind
    path: str
    """Of a file that came with a message: its name in the media cache."""
    media_type: str = "application/octet-stream"
    name: str | None = None
    size: int = 0
    """Bytes; 0 where that is not known."""
    at: int = 0
    """Number of characters of the message's text that come before it."""
    detail: str = ""
    """How closely a model looks at an image (`low`, `high`, …); empty leaves it to the provider."""

    @property
    def label(self) -> str:
        """Names it inside a text, for example `[image cat.png]`."""
        return f"[{self.kind} {self.name}]" if self.name else f"[{self.kind}]"


class ToolCall(Value):
    """A tool that the model asks for."""

    id: CallId
    """The id of the call."""
    name: str
    """The name of the tool."""
    arguments: str
    """The model's JSON, as it wrote it."""
    cut: bool = False
    """The answer was cut off, so the arguments may be incomplete; such a call is never run."""


class UserMessage(Value, tag_field="role", tag="user"):
    text: str
    sender: str | None = None
    """A name to show the model where several people share a session."""
    attachments: tuple[Attachment, ...] = ()
    summary: bool = False
    """Stands for earlier messages: nobody said it."""

    @property
    def parts(self) -> tuple[str | Attachment, ...]:
        """The text in pieces, with each attachment at its place."""
        if not self.attachments:
            return (self.text,)
        found: list[str | Attachment] = []
        start = 0
        for one in sorted(self.attachments, key=lambda one: one.at):
            end = max(start, one.at)
            found += [self.text[start:end].strip("\n"), one]
            start = end
        found.append(self.text[start:].strip("\n"))
        return tuple(part for part in found if part)

    @property
    def described(self) -> str:
        """The text, with a label in the place of each attachment."""
        if not self.attachments:
            return self.text
        return "\n".join(part if isinstance(part, str) else part.label for part in self.parts)


class Echo(Value):
    """What a provider wants back word for word while its tools are answered: signed thoughts."""

    wire: str
    model: str
    """Nobody else is given it."""
    body: str
    """In the provider's own JSON."""


CutReason = Literal["", "length", "content_filter"]
"""Why an answer is not whole: a limit of tokens or a content filter; empty for a whole answer."""


class AssistantMessage(Value, tag_field="role", tag="assistant"):
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: str = ""
    echo: Echo | None = None
    cut: CutReason = ""


class ToolMessage(Value, tag_field="role", tag="tool"):
    call: CallId
    text: str
    failed: bool = False


Message = UserMessage | AssistantMessage | ToolMessage


class Said(Value, tag=True):
    """Words and attachments from a person."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    message_id: str | None = None
    reply_to: str | None = None


class Edited(Value, tag=True):
    """A person changed a message they had sent."""

    message_id: str
    text: str


class Pressed(Value, tag=True):
    """A button under a question of ours."""

    question: str
    choice: str
    message_id: str | None = None


class Sampling(Value):
    """Options of an API request that are passed on to the model."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    reasoning_effort: str | None = None


class ResponseFormat(Value):
    """The form that an API request wants the answer of its turn to have."""

    kind: Literal["json_object", "json_schema"]
    schema: str = ""
    """JSON text of a valid JSON schema; empty for any JSON object."""
    name: str = ""
    description: str = ""
    strict: bool | None = None
    """Whether the provider must refuse a schema that it can't enforce completely."""


class Asked(Value, tag=True):
    """A request over the API: the client's messages, or what is new in a session."""

    messages: tuple[Message, ...]
    instructions: str = ""
    """The request's system messages: for this turn only, never stored in the transcript."""
    model: str | None = None
    """`provider/model` when the request overrides the agent's."""
    sampling: Sampling = Sampling()
    tools: tuple[ClientTool, ...] = ()
    """The client's own tools, offered beside the agent's."""
    tool_choice: ToolChoice = ToolChoice()
    results: tuple[ToolMessage, ...] = ()
    """Results of client tools. They resume the turn that made the calls; `messages` follow them."""
    response_format: ResponseFormat | None = None
    """None for plain text."""
    stateless: bool = True
    """The body is the whole history: nothing of the session is read or added to."""
    detached: bool = False
    """Goes on when its last reader has gone."""
    live: bool = True
    """Every word is wanted as soon as it is said."""


Body = Said | Edited | Pressed | Asked


class Origin(Value):
    """Facts about a message from its entry point; no other code depends on the platform's name."""

    trigger: Trigger = "message"
    principal: Principal | None = None
    """None on chat platforms, where the access rules decide."""
    reply_to: Target | None = None
    """The chat that is sent the answer; None where the caller reads the answer directly."""
    place: str = ""
    """A sentence that tells the model where the conversation takes place. Chats need none."""


class MessageEvent(Value):
    """The only value that an entry point passes to control."""

    dedupe_key: str
    """Stable across redeliveries: the inbox is unique on it."""
    source: Source
    origin: Origin
    received_at: float
    body: Body
    addressed: bool = True
    """False for a group message that was not meant for us."""
    fingerprint: str = ""
    """Of the request, where one key must not serve two bodies."""


class Accepted(Value, tag=True):
    """Durable. `turn` is the turn that will answer, where it is known already."""

    id: str
    turn: str | None = None
    after: int = 0
    """Events of the turn up to this number were before this message."""
    reply: str | None = None
    """The whole answer, where no turn is needed, such as that of a command."""


class Duplicate(Value, tag=True):
    """Taken before, under the same key."""

    id: str
    turn: str | None = None
    same: bool = True
    """False when the key came with another body."""
    after: int = 0
    """Events of the turn up to this number were before this message."""


class Refused(Value, tag=True):
    """Not admitted; nothing was stored."""

    reason: str


Receipt = Accepted | Duplicate | Refused


APPROVE, DENY = "Approve", "Deny"
"""Labels of the buttons that decide an approval."""


class Choices(Value):
    """A question to a person, and the buttons that answer it."""

    question: str
    """Id of the question, which `Pressed.question` repeats."""
    prompt: str
    """The question alone, in Markdown, to stand above the buttons."""
    labels: tuple[str, ...]
    """One button each; `Pressed.choice` is a label. Empty where the answer is free text."""
    text: str
    """The question, its choices and how to answer it by a message, where there are no buttons."""


class Content(Value):
    """The content of one delivery, or of one message of it.

    A delivery holds Markdown. An adapter is given one message at a time: text that its `render` has
    made, with at most one attachment or the choices of one question.
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    choices: tuple[Choices, ...] = ()


class MessageRef(Value):
    """A message of ours on a platform."""

    id: str
