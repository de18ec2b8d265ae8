"""Approvals: what a tool is about to do, and the rules for asking a person first."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from hermes.types.danger import VerdictOutcome
from hermes.types.execution import CommandPlace
from hermes.types.identity import PersonId
from hermes.types.messages import APPROVE
from hermes.types.value import Value

Grant = Literal["once", "session", "always"]
"""How long an approval lasts: for one call, for the rest of the conversation, or until it is
revoked. `session` and `always` cover only exactly the same action for the same person."""

GRANT_LABELS: dict[Grant, str] = {"once": "Once", "session": "This session", "always": "Always"}
"""The labels of the buttons that approve an action, by the duration of the approval."""


def offered_grants(choices: Sequence[str]) -> dict[Grant, str]:
    """Returns the durations that a person can choose when approving an action, each with the label
    of its button. `choices` are the labels of the buttons below the question."""
    if not choices:
        return {"once": APPROVE}
    return {grant: label for grant, label in GRANT_LABELS.items() if label in choices}


ApprovalMode = Literal["auto", "ask", "off"]
"""When a person is asked. `ask`: before every dangerous action. `auto`: before every dangerous
action, unless an isolated sandbox protects against the danger. `off`: never."""


SHORT_ID = 8


def short_id(id: str) -> str:
    """Returns the last characters of the id of an approval. People use them to name the
    approval."""
    return id[-SHORT_ID:]


class ProposedAction(Value):
    """An action that a tool is about to do, as a person sees it before approving it."""

    kind: str
    """The kind of action, in the words of the question: `run a command`, `overwrite a file`."""
    shown: str
    """The exact text that the person approves: the resolved command, or the message."""
    reason: str
    """Why the action needs approval, as a sentence without a final period."""
    outcome: VerdictOutcome = "ask"
    contained: bool = False
    """Whether an isolated sandbox protects against the danger, so that the action needs no approval
    there."""
    leaves: bool = False
    """Whether the action may send data out or write outside of the workspace. Such an action needs
    approval after untrusted content has entered the turn, even if it is harmless otherwise."""
    facts: tuple[str, ...] = ()
    """Further facts that the approval covers, such as the command as the model wrote it. The
    approval is not valid for a call with other facts."""
    lasting: bool = True
    """Whether the action can be approved for longer than one call."""
    remarks: tuple[str, ...] = ()
    """Sentences that the question shows below the action, for example about files that the approval
    does not cover."""
    locate: Callable[[], Awaitable[CommandPlace]] | None = None
    """Finds out where a command would run, and hashes its scripts. This function is called only if
    the action needs approval. None if the action is not a command."""


class ApprovalPolicy(Value):
    """The rules of an agent for approvals."""

    mode: ApprovalMode = "auto"
    taint: bool = True
    """Whether untrusted content matters: after such content has entered the conversation, actions
    that send data out or write outside of the workspace need approval."""
    seconds: float = 3600.0
    """Seconds after which a question expires."""
    unattended: Literal["deny", "allow"] = "deny"
    """The decision if no person is present, for example in a scheduled job."""
    approvers: tuple[PersonId, ...] = ()
    """Other people who may decide. The person that the agent works for may always decide."""
