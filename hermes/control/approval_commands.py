"""Slash commands that decide open approvals: /approve, /deny and /approvals."""

from collections.abc import Sequence

from hermes.control.decisions import listed, may_decide
from hermes.state import approvals
from hermes.state.approvals import OpenApproval
from hermes.types.approvals import GRANT_LABELS, Grant
from hermes.types.commands import ApprovalDecision, CommandContext, CommandReply, SlashCommand
from hermes.types.store import Work

GRANTS: dict[str, Grant] = {"once": "once", "session": "session", "always": "always"}
SHORTEST_ID = 4
"""A person can name an approval by the last characters of its id. This is the minimum number of
characters."""


def approve(command: CommandContext) -> Work[CommandReply]:
    *ids, grant = _split_grant(command.argument)
    found = yield from _meant(command, " ".join(ids))
    if isinstance(found, CommandReply):
        return found
    chosen = GRANTS[grant]
    if found.choices and GRANT_LABELS[chosen] not in found.choices:
        reply = f"This can't be approved for longer: use /approve {found.short_id}."
        return CommandReply(reply=reply, failed=True)
    return _decided(found, chosen)


def deny(command: CommandContext) -> Work[CommandReply]:
    first, _, reason = command.argument.strip().partition(" ")
    if first and not _may_be_id(first):
        first, reason = "", command.argument.strip()
    found = yield from _meant(command, first)
    if isinstance(found, CommandReply):
        return found
    return _decided(found, None, reason.strip())


def show(command: CommandContext) -> Work[CommandReply]:
    """Lists the open approvals that this agent asks the person for. In a group, lists only the
    approvals that were shown in this group."""
    if command.source.chat_kind == "private":
        found = yield from approvals.asked_of(command.person, command.profile.id)
    else:
        # The other members of the group must not see the approvals of the person's private chats.
        found = yield from approvals.asked_in(command.person, command.session, command.source)
    if not found:
        return CommandReply(reply="Nothing waits for your approval.")
    return CommandReply(reply=listed(found, "These actions wait for your decision:"))


def _split_grant(argument: str) -> list[str]:
    """Splits the argument into words. The last word of the result is the duration of the approval,
    which is `once` if the argument does not end with a duration."""
    words = argument.split()
    last = words[-1].casefold() if words else ""
    return [*words[:-1], last] if last in GRANTS else [*words, "once"]


def _meant(command: CommandContext, id: str) -> Work[OpenApproval | CommandReply]:
    """Returns the approval with this id. If `id` is empty, returns the approval that waits in this
    conversation. If there is no such approval or there are several, returns a reply that says
    so."""
    approvers = command.profile.approvals.approvers
    if not id:
        asked = yield from approvals.asked_in(command.person, command.session, command.source)
        here = [one for one in asked if may_decide(one, command.person, command.source, approvers)]
        if len(here) == 1:
            return here[0]
        if here:
            head = "Several actions wait for your decision. Name one by its id:"
            return CommandReply(reply=listed(here, head), failed=True)
        return CommandReply(reply="Nothing here waits for your approval.", failed=True)
    known = yield from approvals.all_open()
    found = [
        one
        for one in known
        if len(id) >= SHORTEST_ID
        and one.id.endswith(id.casefold())
        and one.agent == command.profile.id
        and may_decide(one, command.person, command.source, approvers)
    ]
    if len(found) != 1:
        # A person who may not decide gets the same reply as for an id that does not exist.
        reply = f"No action with the id {id!r} waits for your decision. /approvals lists them."
        return CommandReply(reply=reply, failed=True)
    return found[0]


def _may_be_id(word: str) -> bool:
    return len(word) >= SHORTEST_ID and set(word.casefold()) <= set("0123456789abcdef")


def _decided(found: OpenApproval, grant: Grant | None, reason: str = "") -> CommandReply:
    decision = ApprovalDecision(approval=found.id, grant=grant, reason=reason)
    return CommandReply(reply="", decision=decision)


def approval_commands() -> Sequence[SlashCommand]:
    return (
        SlashCommand(
            name="approve",
            usage=f"[ID] [{' or '.join(GRANTS)}]",
            help="approve what the agent wants to do: once, for this conversation, or always",
            action=approve,
            group="turn",
            stateless=True,
        ),
        SlashCommand(
            name="deny",
            usage="[ID] [REASON]",
            help="deny what the agent wants to do",
            action=deny,
            group="turn",
            stateless=True,
        ),
        SlashCommand(
            name="approvals",
            help="list the actions that wait for your decision",
            action=show,
            group="turn",
        ),
    )
