"""The operator's commands for approvals: list the open approvals and the rules, decide an approval,
and revoke a rule."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from hermes.control.approval_commands import SHORTEST_ID
from hermes.control.decisions import record_decision
from hermes.state import approvals, session_lock
from hermes.state.approvals import ApprovalRule, OpenApproval
from hermes.types.approvals import Grant, offered_grants
from hermes.types.errors import HermesError
from hermes.types.identity import OWNER
from hermes.types.store import Work

__all__ = ["ApprovalRule", "OpenApproval"]

T = TypeVar("T")


class NoSuchApproval(HermesError):
    code = "no_such_approval"
    status = 404


class ApprovalRefused(HermesError):
    """Raised if the operator's decision is not possible for this approval."""

    code = "approval_refused"
    status = 409


def listed() -> Work[tuple[list[OpenApproval], list[ApprovalRule]]]:
    """Returns the open approvals of all conversations, and the rules for later actions."""
    waiting = yield from approvals.all_open()
    return waiting, (yield from approvals.rules())


def decide(name: str, grant: Grant | None, reason: str, now: float) -> Work[OpenApproval]:
    """Records the operator's decision about the approval whose id ends with `name`. If `grant` is
    None, the action is denied. The process that owns the turn notices the decision and resumes the
    turn."""
    known = yield from approvals.all_open()
    found = _named(name, known, lambda one: one.id, "approval that waits")
    if found.expires_at <= now:
        raise ApprovalRefused(
            f"approval {found.short_id} has expired, so the action is not done: the agent learns"
            " this when its turn continues"
        )
    if grant is not None and grant not in offered_grants(found.choices):
        raise ApprovalRefused(
            f"this action can't be approved for more than one call:"
            f" `hermes approvals approve {found.short_id}` approves this call"
        )
    yield from session_lock.lock(found.session)
    if not (yield from record_decision(found, grant, reason, OWNER, now)):
        raise NoSuchApproval(
            f"somebody else has just decided the approval {found.short_id}:"
            " `hermes approvals list` shows the open approvals"
        )
    return found


def revoke(name: str) -> Work[ApprovalRule]:
    """Deletes the rule whose id ends with `name`."""
    known = yield from approvals.rules()
    found = _named(name, known, lambda one: one.id, "rule")
    if not (yield from approvals.revoke(found.id)):
        raise NoSuchApproval(
            f"somebody else has just revoked the rule {name!r}: there is nothing left to do"
        )
    return found


def _named(name: str, known: Sequence[T], id_of: Callable[[T], str], kind: str) -> T:
    wanted = name.casefold()
    found = [one for one in known if len(wanted) >= SHORTEST_ID and id_of(one).endswith(wanted)]
    if not found:
        raise NoSuchApproval(
            f"there is no {kind} with the id {name!r}: `hermes approvals list` shows the ids"
        )
    if len(found) > 1:
        ids = ", ".join(map(id_of, found))
        raise NoSuchApproval(
            f"several ids end with {name!r}: write one of these ids in full: {ids}"
        )
    return found[0]
