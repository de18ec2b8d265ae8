"""Messages: inbound events, the transcript, and outbound content."""

from typing import Literal

from hermes.types.client_tools import ClientTool, ToolChoice
from hermes.types.identity import CallId, Principal, Source, Target, Trigger
from hermes.types.value import Value

AttachmentKind = Literal["image", "audio", "video", "file"]


class Attachment(Value):
    """A file that was received or is sent with a message."""

    kind: AttachmentKind
    path: str
    """The path of a file to send, or the name of a received file in the media cache."""
    media_type: str = "application/octet-stream"
    name: str | None = None
    size: int = 0
    """Size in bytes; 0 if unknown."""
    at: int = 0
    """The attachment's position in the text: the number of characters before the attachment."""
    saved: str = ""
    """The agent's tools use a copy of the file in the workspace. This is the path of the copy;
    empty if there is no copy."""
    detail: str = ""
    """The resolution at which the model sees an image (`low`, `high`, …); if empty, the provider
    chooses."""

    @property
    def file_name(self) -> str:
        """The name of the file. If the name is not known, the last part of the path."""
        return self.name or self.path.rpartition("/")[2]

    @property
    def label(self) -> str:
        """The text that represents the attachment, for example `[image cat.png]`."""
        return f"[{self.kind} {self.name}]" if self.name else f"[{self.kind}]"


class ToolCall(Value):
    """A call of a tool by the model."""

    id: CallId
    """The id of the call."""
    name: str
    """The name of the tool."""
    arguments: str
    """The JSON text exactly as the model wrote it."""
    cut: bool = False
    """Whether the answer was cut off, so that the arguments may be incomplete. The call is not
    run."""


class UserMessage(Value, tag_field="role", tag="user"):
    text: str
    sender: str | None = None
    """The sender's name, which the model sees in a session that several people share."""
    attachments: tuple[Attachment, ...] = ()
    summary: bool = False
    """Whether this message is a summary that replaces earlier messages, and not the text of a
    person."""
    trusted: bool = False
    """Whether this message is a summary, and the messages that it replaces contain no text from
    strangers. For example, the text of a web page is text from strangers."""

    @property
    def parts(self) -> tuple[str | Attachment, ...]:
        """The pieces of the text, with each attachment at its position."""
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
        """The text with a label for each attachment, at its position."""
        if not self.attachments:
            return self.text
        return "\n".join(part if isinstance(part, str) else part.label for part in self.parts)


class Echo(Value):
    """Data in a model's answer, such as signed reasoning, that must be sent back unchanged together
    with the results of the tool calls."""

    wire: str
    model: str
    """The model that the data came from. The data is sent only to this model, and only in the wire
    format `wire`."""
    body: str
    """The data as JSON, in the provider's own format."""


CutReason = Literal["", "length", "content_filter"]
"""Why an answer is incomplete: a token limit or a content filter; empty for a complete answer."""


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
    """A message that a person sent."""

    text: str
    attachments: tuple[Attachment, ...] = ()
    message_id: str | None = None
    reply_to: str | None = None


class Edited(Value, tag=True):
    """A person edited a message that they had sent."""

    message_id: str
    text: str


class Pressed(Value, tag=True):
    """A person pressed a button below one of our questions."""

    question: str
    choice: str
    message_id: str | None = None
    reason: str = ""
    """Why the person denies an action; empty without a reason."""


class Invited(Value, tag=True):
    """A person invited our account to a chat. The adapter joins the chat if this event is accepted.
    The source has the kind `private` only if the invitation says so. The event is not stored."""


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
    """The format that an API request requires of the answer."""

    kind: Literal["json_object", "json_schema"]
    schema: str = ""
    """JSON text of a valid JSON schema; empty for any JSON object."""
    name: str = ""
    description: str = ""
    strict: bool | None = None
    """Whether the provider must refuse a schema that it can't enforce completely."""


class Asked(Value, tag=True):
    """A request over the API. It contains the client's whole history, or only the new messages of a
    session."""

    messages: tuple[Message, ...]
    instructions: str = ""
    """The request's system messages. They apply to this turn only and are not in the transcript."""
    model: str | None = None
    """The model that the request names, as `provider/model`; None for the agent's own model."""
    sampling: Sampling = Sampling()
    tools: tuple[ClientTool, ...] = ()
    """The client's own tools, offered in addition to the agent's tools."""
    tool_choice: ToolChoice = ToolChoice()
    results: tuple[ToolMessage, ...] = ()
    """Results of client tools. They resume the turn that made the calls. The turn's history then
    continues with `messages`."""
    response_format: ResponseFormat | None = None
    """The required format of the answer; None for plain text."""
    stateless: bool = True
    """Whether `messages` is the whole history, so that no session is read or written."""
    detached: bool = False
    """Whether the turn continues after its last reader has disconnected."""
    live: bool = True
    """Whether the client reads each word as soon as the model writes it."""


Body = Said | Edited | Pressed | Invited | Asked


class Origin(Value):
    """Facts that the entry point knows about a message. Other code uses these facts instead of the
    platform's name."""

    trigger: Trigger = "message"
    principal: Principal | None = None
    """The identity that the entry point has authenticated. None on chat platforms, where access
    rules decide who may write."""
    reply_to: Target | None = None
    """The chat that the answer is sent to; None if the caller reads the answer directly."""
    place: str = ""
    """A sentence that tells the model where the conversation takes place. In a chat, the sentence
    is added to the usual description of a chat. Most chats need no such sentence."""
    bot: str = ""
    """Our name in the chat, as in `/stop@name`; empty if the platform has no such commands."""
    terminal: bool = False
    """Whether the message was typed in a terminal."""


class ClientKey(Value):
    """The client's own idempotency key. In most requests, this key is a part of `dedupe_key`. Only
    a request with tool results has it as a separate value, because the `dedupe_key` of such a
    request is built from the results."""

    dedupe_key: str
    fingerprint: str
    """Hash of the request's session and body."""


class MessageEvent(Value):
    """A message, a press of a button or an API request. Entry points pass nothing else to the
    control layer."""

    dedupe_key: str
    """Identifies the message. The inbox stores each key only once, so a message that is delivered
    again must have the key of its first delivery."""
    source: Source
    origin: Origin
    received_at: float
    body: Body
    addressed: bool = True
    """Whether the message is addressed to the agent. Some messages in a group are not."""
    fingerprint: str = ""
    """Hash of the request's body. It shows whether one idempotency key was used for two different
    requests."""
    client_key: ClientKey | None = None
    """The client's idempotency key if the request has tool results; None for other requests."""
    album: str = ""
    """The platform's id of the album that the message belongs to, if the parts of the album arrive
    one by one. The parts become one message. Empty for every other message."""
    cut_with: str | None = None
    """A message of nearly the maximum length is probably the first part of a text that the platform
    has cut. For such a message, this field has the text that joins the message to the next part: an
    empty text or a line break. None for every other message."""


class Accepted(Value, tag=True):
    """The message is stored. `turn` is the turn that will answer it, if that turn is known
    already."""

    id: str
    turn: str | None = None
    after: int = 0
    """The number of the turn's last event before this message. Later events belong to the
    answer."""
    reply: str | None = None
    """The whole answer if no turn is needed, for example the reply to a command."""
    failed: bool = False
    """Whether the reply says why a command was not carried out."""


class Duplicate(Value, tag=True):
    """A message with the same key was stored before."""

    id: str
    turn: str | None = None
    same: bool = True
    """Whether the earlier message had the same body."""
    after: int = 0
    """The number of the last event that `turn` had when the earlier message with this key was
    stored. Later events belong to the answer."""


class Refused(Value, tag=True):
    """The message was refused, and nothing was stored."""

    reason: str


Receipt = Accepted | Duplicate | Refused


APPROVE, DENY = "Approve", "Deny"
"""Labels of the buttons that decide an approval."""


class Choices(Value):
    """A question for a person, and the buttons that answer it."""

    question: str
    """Id of the question. If a person presses a button, `Pressed.question` has the same id."""
    prompt: str
    """The question alone, in Markdown, to be shown above the buttons."""
    labels: tuple[str, ...]
    """The labels of the buttons. `Pressed.choice` is one of these labels. Empty if the answer is
    free text."""
    text: str
    """The text for platforms without buttons: the question, its choices, and how to answer by
    message."""
    hint: str = ""
    """The instructions for answering with a message, which are shown between the prompt and the
    buttons. Empty if the buttons are enough."""
    outcome: str = ""
    """The sentence at the end of `prompt` and `text` that says what was decided. Empty while the
    question is open. A question with an outcome has no buttons."""


class Content(Value):
    """The content of a delivery or of one of its messages.

    A delivery holds Markdown. An adapter receives one message at a time: text that its own `render`
    returned, with at most one attachment or one question.
    """

    text: str
    attachments: tuple[Attachment, ...] = ()
    choices: tuple[Choices, ...] = ()
    plain: bool = False
    """Whether an adapter must send the text as it is, without formatting. It is set after the
    platform has refused the rendered text."""


class MessageRef(Value):
    """Identifies one of our messages on its platform."""

    id: str
