"""Slash commands: their names, help texts, conditions and transactions."""

from collections.abc import Callable
from typing import Literal

from hermes.types.approvals import Grant
from hermes.types.identity import PersonId, SessionKey, Source, Target, TurnId
from hermes.types.messages import Attachment
from hermes.types.people import Role
from hermes.types.profile import AgentProfile, BusyMode, ModelChoice
from hermes.types.store import Work
from hermes.types.value import Value

CommandSurface = Literal["terminal", "chat", "api"]
"""The place where a command is typed: a terminal, a chat on a platform, or a session of the API."""
COMMAND_SURFACES: tuple[CommandSurface, ...] = ("terminal", "chat", "api")
CommandGroup = Literal["conversation", "turn", "model", "other"]
"""The group in which /help lists a command."""


class OpenTurn(Value):
    """The unfinished turn of a session."""

    id: TurnId
    state: Literal["running", "suspended"]
    steps: int
    """Number of model calls that the turn has made so far."""
    started_at: float


class CommandContext(Value):
    """A command that a person sent, with the state of the session."""

    session: SessionKey
    person: PersonId
    role: Role
    """The role of the person who sent the command."""
    argument: str
    """The text after the command's name."""
    turn: OpenTurn | None
    """The session's unfinished turn; None while the session is idle."""
    now: float
    source: Source
    """The chat and the user that the command came from."""
    surface: CommandSurface
    chat: Target | None
    """The chat that the reply is sent to; None for the terminal and the API."""
    profile: AgentProfile
    """The configuration of the session's agent."""
    find_model: Callable[[str], ModelChoice]
    """Finds a model by the name that a person typed; see `types.agents.FindModel`."""


class CommandMessage(Value):
    """A message that a command sends for the person, such as the text after `/queue`. It replaces
    the command in the inbox."""

    text: str
    attachments: tuple[Attachment, ...] | None = None
    """The attachments of the message. None means the attachments that came with the command."""
    mode: BusyMode | None = None
    """How the message is handled while a turn runs; None for the mode of the chat."""
    background: bool = False
    """Whether the message opens a turn in a new session. The command's reply is sent, too."""


class ApprovalDecision(Value):
    """A person's decision about an action of the agent."""

    approval: str
    """The id of the open approval."""
    grant: Grant | None
    """How long the action is approved; None if it is denied."""
    reason: str = ""
    """The reason for a denial. The model reads it."""


class CommandReply(Value):
    """The reply to a command, and what must be done after the command's transaction is
    committed."""

    reply: str
    """The text of the reply. If the command sends a message, the message is answered instead, and
    the reply is not used. Exception: if the message is answered in the background, the reply is
    sent, too."""
    message: CommandMessage | None = None
    stop: TurnId | None = None
    """The turn that is interrupted after the commit, if there is one."""
    ended: bool = False
    """Whether the command ended the session's conversation."""
    failed: bool = False
    """Whether the command was not found or could not be carried out; the reply says why."""
    notified: Target | None = None
    """Another chat to which the command has added a delivery."""
    decision: ApprovalDecision | None = None
    """A decision that the command has made. The turn that waited for this decision continues, and
    the reply is not used."""
    secret: bool = False
    """Whether the reply contains a secret. A secret reply is sent once and never stored."""


Action = Callable[[CommandContext], Work[CommandReply]]
"""Carries out a command. The action runs inside the transaction that stores the message with the
command, so the command runs exactly once."""


class SlashCommand(Value):
    """An entry in the table of commands. The gateway runs the action only if all conditions of the
    entry are met. Otherwise the reply says which condition is not met."""

    name: str
    help: str
    """One line that describes the command in the list of commands."""
    action: Action
    aliases: tuple[str, ...] = ()
    usage: str = ""
    """The arguments, as in `[NAME]`; empty if the command has none."""
    group: CommandGroup = "other"
    role: Role = Role.USER
    """The lowest role that may use the command."""
    while_running: bool = True
    """Whether the command may be used while a turn of the session is unfinished."""
    setting: str = ""
    """The key of a boolean setting. While this setting is false, the command can't be used. Empty
    for a command that can always be used."""
    surfaces: tuple[CommandSurface, ...] = COMMAND_SURFACES
    """The places where the command can be used."""
    stateless: bool = False
    """Whether the command can also be used in an API request without a session."""
