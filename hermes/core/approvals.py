"""Decides whether a tool may do what it is about to do, or whether a person must be asked first."""

import hashlib
import logging
import re

import msgspec

from hermes.core.tools.results import Redact
from hermes.state import approvals
from hermes.text.console import visible
from hermes.text.markdown import code_span, literal
from hermes.types.approvals import GRANT_LABELS, ApprovalPolicy, ProposedAction
from hermes.types.errors import ToolFailed
from hermes.types.execution import CommandPlace
from hermes.types.identity import CallId
from hermes.types.store import Store
from hermes.types.tools import NeedsPerson
from hermes.types.turns import (
    Answered,
    Approved,
    Cancelled,
    Denied,
    Expired,
    Question,
    Turn,
    Undelivered,
)

log = logging.getLogger(__name__)

ATTENDED = ("message", "api")
"""In turns with these triggers, a person is present who can see and answer questions."""
REFUSED = (
    "Refused: {}. Nobody can approve this action. Do not try it in another way; tell the person."
)
NOBODY = (
    "Not done: this needs approval ({}), and no person is present to decide. Go on without it, and"
    " report that it was not done."
)
DENIED = "The person denied this action{}. Do not try it in another way."
EXPIRED = "Nobody decided about this action in time, so it was not done. Nobody refused it."
UNDELIVERED = (
    "Nobody has seen the question about this action, because it could not be delivered. It was not"
    " done."
)
CANCELLED = "Not done: the turn was stopped before anybody decided about this action."
ACTION_CHANGED = (
    "Not done: what would happen is no longer what was approved. Make the call again to ask again."
)
TAINTED = "the conversation contains text by others, and this can send data out"


class ApprovalGate:
    """Checks the actions of one agent."""

    def __init__(
        self, policy: ApprovalPolicy, store: Store, *, isolated: bool, redact: Redact = str
    ) -> None:
        """`isolated` says whether a sandbox isolates the agent's commands from this machine.
        `redact` masks the secrets in the texts that people are shown."""
        self._redact = redact
        self._policy = policy
        self._store = store
        self._isolated = isolated

    async def permit(
        self, turn: Turn, call: CallId, action: ProposedAction, *, tainted: bool
    ) -> CommandPlace | None:
        """Returns normally if the action is permitted. The result is the place (backend, folder,
        environment and scripts) in which the action must be done; None if the place does not
        matter.

        Raises NeedsPerson if a person must be asked, and ToolFailed if the action is not permitted.
        `tainted` says whether untrusted content has entered the turn.
        """
        if action.outcome == "never":
            log.warning("turn %s: an action was refused: %s", turn.id, action.reason)
            raise ToolFailed(REFUSED.format(action.reason))
        reason = self._reason(action, tainted=tainted)
        decision = turn.decisions.get(call)
        if reason is None and decision is None:
            return None
        if decision is not None and not isinstance(decision, Approved):
            raise ToolFailed(_refusal(decision))
        place = await action.locate() if action.locate else None
        if decision is None:
            assert reason is not None
            if not await self._is_permitted(turn, action, place, reason):
                raise NeedsPerson(self._question(turn, call, action, place, reason))
        elif decision.digest != digest_of(action, place, str(turn.session)):
            log.warning("turn %s: an approved action has changed, and was not done", turn.id)
            raise ToolFailed(ACTION_CHANGED)
        return place

    def check_harmless(self, turn: Turn, call: CallId) -> None:
        """Checks a call that needs no approval now, but may have needed approval earlier. Raises
        ToolFailed if a person has denied the call, or if the action has changed since a person
        approved it."""
        match turn.decisions.get(call):
            case Denied() as denied:
                raise ToolFailed(_refusal(denied))
            case Approved():
                raise ToolFailed(ACTION_CHANGED)
            case _:
                pass

    def _reason(self, action: ProposedAction, *, tainted: bool) -> str | None:
        """Returns why the action needs approval; None if it needs none."""
        policy = self._policy
        if policy.mode == "off":
            return None
        contained = action.contained and self._isolated and policy.mode == "auto"
        if action.outcome == "ask" and not contained:
            return action.reason
        return TAINTED if tainted and action.leaves and policy.taint else None

    async def _is_permitted(
        self, turn: Turn, action: ProposedAction, place: CommandPlace | None, reason: str
    ) -> bool:
        """Returns whether a person has already approved the action, for this session or
        permanently. If no person is present, the policy decides."""
        if turn.person is not None:
            digests = digest_of(action, place, str(turn.session)), digest_of(action, place, "")
            if await self._store.read(approvals.is_granted, turn.agent, turn.person, *digests):
                return True
        if turn.trigger in ATTENDED:
            return False
        if self._policy.unattended == "allow":
            return True
        log.warning("turn %s: no person can approve an action: %s", turn.id, reason)
        raise ToolFailed(NOBODY.format(reason))

    def _question(
        self,
        turn: Turn,
        call: CallId,
        action: ProposedAction,
        place: CommandPlace | None,
        reason: str,
    ) -> Question:
        lasting = action.lasting and not turn.stateless and turn.person is not None
        return Question(
            call=call,
            kind="approval",
            # The text that a person approves must not contain characters that the person can't see.
            prompt=visible(self._redact(prompt_of(action, place, reason))),
            choices=tuple(GRANT_LABELS.values()) if lasting else (GRANT_LABELS["once"],),
            detail=visible(self._redact(action.shown)),
            reason=visible(self._redact(reason)),
            digest=digest_of(action, place, str(turn.session)),
            lasting_digest=digest_of(action, place, ""),
            expires_in=self._policy.seconds,
        )


def _refusal(decision: Denied | Expired | Undelivered | Cancelled | Answered) -> str:
    """Returns the text that tells the model why the action was not done."""
    match decision:
        case Denied(reason=reason):
            return DENIED.format(f": {reason}" if reason else "")
        case Expired():
            return EXPIRED
        case Undelivered():
            return UNDELIVERED
        case Cancelled() | Answered():
            return CANCELLED


def digest_of(action: ProposedAction, place: CommandPlace | None, session: str) -> str:
    """Returns a hash of the action, the place where it is done (such as the backend and the folder)
    and the session. An approval is valid only while this hash stays the same. Pass an empty session
    for an approval that is valid in all sessions."""
    bound = (action.kind, action.shown, action.facts, place, session)
    return hashlib.sha256(msgspec.json.encode(bound)).hexdigest()


def prompt_of(action: ProposedAction, place: CommandPlace | None, reason: str) -> str:
    """Returns the question that asks a person to approve the action, in Markdown."""
    asked = f"I am about to {literal(action.kind)}, which needs your approval:"
    lines = [asked, "", fenced(action.shown)]
    if place is not None:
        lines.append(f"in {code_span(place.folder)} ({place.backend})")
        for script in place.scripts:
            content = f"with the content {script.digest[:12]}" if script.digest else "if it exists"
            lines.append(f"- runs the file {code_span(script.path)} {content}")
    return "\n\n".join(["\n".join(lines), f"Reason: {literal(reason)}.", *action.remarks])


def fenced(text: str) -> str:
    """Returns the text as a Markdown code block. Backticks in the text can't end the block."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}\n{text}\n{ticks}"
