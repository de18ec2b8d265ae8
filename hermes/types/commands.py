"""A slash command: its name, its help, and the transaction that carries it out."""

from collections.abc import Callable
from typing import Literal

from hermes.types.identity import PersonId, SessionKey, TurnId
from hermes.types.profile import ModelChoice
from hermes.types.store import Work
from hermes.types.value import Value


class OpenTurn(Value):
    """The turn that a session is working on."""

    id: TurnId
    state: Literal["running", "suspended"]
    steps: int
    """Model calls made so far."""
    started_at: float


class CommandContext(Value):
    """A command as a person gave it."""

    session: SessionKey
    person: PersonId
    argument: str
    """The text after the command's name."""
    turn: OpenTurn | None
    """None while the session is idle."""
    now: float
    find_model: Callable[[str], ModelChoice]
    """Finds the model that a name means to the session's agent; see `types.agents.FindModel`."""


class CommandReply(Value):
    """The reply to a command, and what happens once the command is committed."""

    reply: str
    stop: TurnId | None = None
    """A turn to interrupt."""
    ended: bool = False
    """The session's conversation is over."""
    failed: bool = False
    """The command was not found or could not be carried out; the reply says why."""


Action = Callable[[CommandContext], Work[CommandReply]]
"""Part of the transaction that takes the message in, so that it happens exactly once."""


class SlashCommand(Value):
    name: str
    help: str
    """One line for the list of commands."""
    action: Action
    aliases: tuple[str, ...] = ()
