"""Records the decisions of people about open questions, and resumes the turns that waited."""

import logging
from collections.abc import Sequence

from hermes.control.client_calls import ClientCalls
from hermes.control.event_content import answer_text, files_of
from hermes.control.incoming import Incoming, IntakeResult, store_row, tell
from hermes.control.turn_transactions import TurnTransactions
from hermes.state import approvals, inbox, questions, session_lock, turns
from hermes.state.approvals import OpenApproval
from hermes.state.turns import EVENTS_PER_CLAIM, TurnRow
from hermes.text.markdown import literal
from hermes.types.approvals import GRANT_LABELS, Grant, offered_grants
from hermes.types.commands import ApprovalDecision, CommandReply
from hermes.types.identity import PersonId, Source, TurnId, person_of
from hermes.types.messages import (
    DENY,
    Accepted,
    Asked,
    Duplicate,
    MessageEvent,
    Pressed,
    Refused,
)
from hermes.types.store import Work

__all__ = ["OpenApproval"]

log = logging.getLogger(__name__)

YES = frozenset({"yes", "y", "approve", "approved"})
NO = frozenset({"no", "n", "deny", "denied"})
NOT_OPEN = "this question is no longer open"
NOT_YOURS = "only the person who asked for this, or an approver, may decide it"


class Decisions:
    def __init__(self, transactions: TurnTransactions, client_calls: ClientCalls) -> None:
        self._transactions = transactions
        self._client_calls = client_calls

    def take_word(self, message: Incoming, now: float) -> Work[IntakeResult | None]:
        """Handles a message that is only a yes or a no. The message decides the approval that waits
        for the person in this conversation. If several questions are open, the message is refused,
        because it does not say which of them it answers. Returns None if no approval waits, or if
        the message is anything else."""
        event, person = message.event, message.person
        word = bare_word(event)
        if word is None:
            return None
        asked = yield from approvals.asked_in(person, message.key, event.source)
        waiting = [
            one for one in asked if may_decide(one, person, event.source, self._approvers(one))
        ]
        if not waiting or (yield from self._answers_question(message)):
            return None
        open_ones = yield from questions.open_questions(waiting[0].turn)
        clear = len(waiting) == len(open_ones) == 1
        stored = yield from store_row(message, self._transactions.owner, "done")
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        if not clear:
            reply = CommandReply(reply=listed(waiting, UNCLEAR), failed=True)
            return (yield from tell(stored, event, message.key, reply, now))
        grant: Grant | None = "once" if word in YES else None
        return (yield from self.settle(message, stored, waiting[0], grant, "", now))

    def ask_again(self, message: Incoming, turn: TurnId, now: float) -> Work[IntakeResult | None]:
        """Refuses a message to a turn that waits for approvals, and replies with a list of these
        approvals. Otherwise a client that waits for an answer would not notice that a decision is
        missing. Returns None if no approval is open."""
        waiting = yield from approvals.of_turn(turn)
        if not waiting:
            return None
        stored = yield from store_row(message, self._transactions.owner, "done")
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        reply = CommandReply(reply=listed(waiting, DECIDE_FIRST), failed=True)
        return (yield from tell(stored, message.event, message.key, reply, now))

    def _answers_question(self, message: Incoming) -> Work[bool]:
        """Returns whether the turn of the message's session waits for the person's answer to a
        question that is not an approval. A yes or no then answers this question, even if work in
        the background waits for an approval."""
        turn = yield from turns.open_in(str(message.key))
        if turn is None or turn.person != message.person:
            return False
        asked = yield from questions.open_questions(turn.id)
        return bool(asked) and all(one.kind == "question" for one in asked)

    def take_press(
        self, message: Incoming, approval: OpenApproval, pressed: Pressed, now: float
    ) -> Work[IntakeResult]:
        """Handles a press of a button below an approval."""
        if not may_decide(
            approval, message.person, message.event.source, self._approvers(approval)
        ):
            return IntakeResult(receipt=Refused(reason=NOT_YOURS))
        offered = offered_grants(approval.choices)
        grants: dict[str, Grant | None] = {DENY: None, **{offered[one]: one for one in offered}}
        if pressed.choice not in grants:
            return IntakeResult(receipt=Refused(reason="this question has no such choice"))
        stored = yield from store_row(message, self._transactions.owner, "done")
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        grant, reason = grants[pressed.choice], pressed.reason
        return (yield from self.settle(message, stored, approval, grant, reason, now))

    def take_command(
        self, message: Incoming, stored: str, decision: ApprovalDecision, now: float
    ) -> Work[IntakeResult]:
        """Carries out a decision that a person made with a slash command. The command has already
        checked that the person may decide."""
        approval = yield from approvals.find(decision.approval)
        if approval is None:
            return (yield from _too_late(message, stored, now))
        return (
            yield from self.settle(message, stored, approval, decision.grant, decision.reason, now)
        )

    def settle(
        self,
        message: Incoming,
        stored: str,
        approval: OpenApproval,
        grant: Grant | None,
        reason: str,
        now: float,
    ) -> Work[IntakeResult]:
        """Records the decision, and resumes the turn if it has no other open question. If `grant`
        is None, the action is denied, and `reason` says why. Changes nothing if somebody else has
        already decided, for example at another gateway, or if the turn is being stopped."""
        yield from session_lock.lock(approval.session)
        name = message.event.source.user_name
        turn = yield from turns.get(approval.turn)
        if turn is None or turn.state != "suspended" or turn.stop_requested:
            return (yield from _too_late(message, stored, now))
        if approval.expires_at <= now:
            # No decision is recorded: the maintenance marks the question as expired, and the turn
            # is then resumed.
            return (yield from _too_late(message, stored, now))
        if not (yield from record_decision(approval, grant, reason, message.person, now, name)):
            return (yield from _too_late(message, stored, now))
        return (yield from self.resume(message, stored, turn, now))

    def resume(
        self, message: Incoming, stored: str, turn: TurnRow, now: float
    ) -> Work[IntakeResult]:
        """Resumes a turn after a message has decided one of its questions. If other questions of
        the turn are still open, replies with a list of them instead. `stored` is the id of the
        message's row in the inbox."""
        left = yield from questions.open_questions(turn.id)
        if left:
            still = "; ".join(literal(question.brief) for question in left)
            noted = CommandReply(reply=f"Noted. Still open: {still}")
            return (yield from tell(stored, message.event, message.key, noted, now))
        yield from inbox.bind(stored, turn.id, "done")
        yield from self._client_calls.give_up(turn, now)
        claim = yield from self._transactions.resume_if_here(turn, now)
        after = (turn.epoch + 1) * EVENTS_PER_CLAIM
        yield from inbox.set_after(stored, after)
        return IntakeResult(receipt=Accepted(id=stored, turn=turn.id, after=after), claim=claim)

    def _approvers(self, approval: OpenApproval) -> Sequence[PersonId]:
        return self._transactions.agent(approval.agent).profile.approvals.approvers


DECIDE_FIRST = (
    "Not accepted, because the conversation waits for your decision. Decide first, then send this"
    " message again:"
)


def _too_late(message: Incoming, stored: str, now: float) -> Work[IntakeResult]:
    """Replies to a decision about an approval that is no longer open."""
    reply = CommandReply(reply=f"Nothing was changed: {NOT_OPEN}.", failed=True)
    return (yield from tell(stored, message.event, message.key, reply, now))


UNCLEAR = "It is not clear what you decide, because several questions are open. Use the ids:"


def record_decision(
    approval: OpenApproval,
    grant: Grant | None,
    reason: str,
    who: str,
    now: float,
    name: str | None = None,
) -> Work[bool]:
    """Stores the decision. If the decision also covers later actions, stores a rule for them.
    `name` is the name of the person. Returns False if the approval is no longer open."""
    state, answer = ("denied", reason) if grant is None else ("approved", GRANT_LABELS[grant])
    if (yield from questions.decide(approval.id, state, answer, who, now, name)) is None:
        return False
    log.info("approval %s of turn %s: %s by %s", approval.id, approval.turn, state, who)
    if grant == "session":
        yield from approvals.grant(approval, approval.digest, approval.session, who, now)
    elif grant == "always":
        yield from approvals.grant(approval, approval.lasting_digest, None, who, now)
    return True


def waiting_in(turn: TurnId) -> Work[list[OpenApproval]]:
    """Returns the open approvals of the turn, oldest first."""
    return (yield from approvals.of_turn(turn))


def may_decide(
    approval: OpenApproval, person: PersonId, source: Source, approvers: Sequence[PersonId]
) -> bool:
    """Returns whether this sender may decide the approval. The person that the agent works for may
    decide it, and so may the approvers. A bot may never decide it."""
    if source.is_bot:
        return False
    return person == approval.person or not approvers_of(person, source).isdisjoint(approvers)


def approvers_of(person: PersonId, source: Source) -> frozenset[PersonId]:
    """Returns the ids of the sender. The settings can list an approver by any of these ids: the id
    of the person, or the id of the user on the platform."""
    return frozenset((person, person_of(source.platform, source.user_id)))


def bare_word(event: MessageEvent) -> str | None:
    """Returns the word if the message is nothing but a yes or a no. Returns None for any other
    message, and for every request without a session, because such a request belongs to no
    conversation."""
    if (isinstance(event.body, Asked) and event.body.stateless) or files_of(event):
        return None
    word = (answer_text(event) or "").strip().rstrip(".!").casefold()
    return word if word in YES | NO else None


def listed(waiting: Sequence[OpenApproval], head: str) -> str:
    """Returns a text whose first line is `head`, followed by a list of these open approvals."""
    lines = (
        f"/approve {one.short_id} or /deny {one.short_id}: {literal(one.brief)}" for one in waiting
    )
    return "\n".join([head, *lines])
