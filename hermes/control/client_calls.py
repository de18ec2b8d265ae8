"""Handles calls of client tools. The client of an API request runs these tools itself, so such a
call suspends the turn until the client sends the result."""

from msgspec.structs import replace

from hermes.control.repeats import Repeated, repeat
from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.core.agent import unanswered
from hermes.state import inbox, questions, session_lock, transcript, turns
from hermes.state.codec import record
from hermes.state.questions import OpenQuestion
from hermes.state.turns import EVENTS_PER_CLAIM, TurnRow
from hermes.streaming.fold import SEGMENT_SEPARATOR
from hermes.types.errors import HermesError
from hermes.types.events import TurnFinished
from hermes.types.identity import CallId, PersonId, SessionKey, new_id, parse_call_id
from hermes.types.messages import (
    Accepted,
    Asked,
    Duplicate,
    MessageEvent,
    Receipt,
    ToolMessage,
)
from hermes.types.store import Work
from hermes.types.turns import Expired
from hermes.types.value import Value

WENT_ON = "the client went on without the results of its tools"
NOT_ANSWERED = "Not answered: the client went on without this result."
NOT_FINISHED = "Not finished: the client went on without waiting for this."
AFTER_RESULTS = 1_000_000
"""Messages that follow the results of a step get indexes from this number on. It is larger than the
index of every result, so that these messages come after the results."""


class ResultsRefused(HermesError):
    """Raised if the results of client tools can't be accepted. Nothing was stored, and a waiting
    turn continues to wait."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


class TakenResults(Value):
    """The receipt for the results of a client, and the turn that these results resume."""

    receipt: Receipt
    claim: Claim | None = None


class ClientCalls:
    def __init__(self, transactions: TurnTransactions) -> None:
        self._transactions = transactions

    def take(
        self, event: MessageEvent, body: Asked, key: SessionKey, person: PersonId, now: float
    ) -> Work[TakenResults]:
        """Stores the results of client tools, and resumes the turn that made the calls. Sending the
        same results again changes nothing."""
        if conflict := (yield from _key_conflict(event)):
            return TakenResults(receipt=conflict)
        row = yield from self._turn_of(event, body, key)
        open_ones = yield from questions.open_questions(row.id)
        repeated = yield from repeat(self._transactions, event, now)
        if repeated is not None:
            return _repeated(repeated, row, open_ones)
        id, session = new_id(), SessionKey.parse(row.session)
        yield from inbox.insert(id, event, session, person, self._transactions.owner, "done")
        if keyed := _keyed(event):
            yield from inbox.insert(
                new_id(), keyed, session, person, self._transactions.owner, "done"
            )
        waiting = yield from questions.open_client_calls(row.id)
        if row.state == "suspended" and not waiting:
            yield from _refuse_expired(row, body.results)
        _check(row, waiting, body.results)
        if body.messages:
            yield from _check_nothing_else_is_open(row, waiting, open_ones)
        yield from inbox.bind(id, row.id, "done")
        yield from turns.set_request(row.id, id)
        yield from self._append(row, body, now)
        yield from questions.close_client_calls(row.id, now)
        if open_ones:
            return TakenResults(receipt=Accepted(id=id, reply=_asked(open_ones)))
        found = yield from turns.get(row.id)
        assert found is not None
        claim = yield from self._transactions.resume_if_here(found, now)
        after = (found.epoch + 1) * EVENTS_PER_CLAIM
        yield from inbox.set_after(id, after)
        return TakenResults(receipt=Accepted(id=id, turn=row.id, after=after), claim=claim)

    def give_up(self, row: TurnRow, now: float) -> Work[None]:
        """Adds a result to each open client call of the turn. The added result says that the client
        sent no result."""
        writer = self._transactions.writer(row)
        for call in (yield from questions.open_client_calls(row.id)):
            result = ToolMessage(call=call, text=NOT_ANSWERED, failed=True)
            yield from transcript.append(writer, *_place(call), result, now)
        yield from questions.close_client_calls(row.id, now)

    def end(self, row: TurnRow, now: float) -> Work[None]:
        """Ends a turn whose client has sent a new message instead of the results of its tools."""
        yield from self.give_up(row, now)
        # Calls of the agent's own tools may lack a result, too: for example, a call whose question
        # has expired. Such calls get a result here.
        yield from transcript.answer_open_calls(self._transactions.writer(row), NOT_FINISHED, now)
        epoch = yield from turns.claim(row.id, row.epoch, self._transactions.owner)
        yield from turns.close(row.id, epoch, "stopped", now, reason=(WENT_ON, ""))
        finished = TurnFinished(outcome="stopped", text=WENT_ON)
        first = epoch * EVENTS_PER_CLAIM + 1
        yield from turns.keep_events(row.id, first, record(first, [finished]))
        yield from inbox.finish(row.id)

    def _turn_of(self, event: MessageEvent, body: Asked, key: SessionKey) -> Work[TurnRow]:
        """Returns the turn that made the calls. Raises ResultsRefused if the turn does not exist,
        or belongs to another principal or session."""
        place = parse_call_id(body.results[0].call)
        row = (yield from turns.get(place.turn)) if place else None
        if row is not None:
            yield from session_lock.lock(row.session)
            row = yield from turns.get(row.id)
        theirs = row is not None and row.trigger == "api" and row.account == event.source.account
        if (
            row is None
            or not theirs
            or (not body.stateless and row.session != str(key))
            or not self._transactions.hosts(row.session)
        ):
            call = body.results[0].call
            raise ResultsRefused(404, "unknown_tool_call", f"There is no tool call {call!r}.")
        return row

    def _append(self, row: TurnRow, body: Asked, now: float) -> Work[None]:
        """Adds the results to the transcript, followed by the client's further messages."""
        writer = self._transactions.writer(row)
        for result in body.results:
            yield from transcript.append(writer, *_place(result.call), result, now)
        step, _ = _place(body.results[0].call)
        for index, message in enumerate(body.messages, AFTER_RESULTS):
            yield from transcript.append(writer, step, index, message, now)


def _keyed(event: MessageEvent) -> MessageEvent | None:
    """Returns the event with the client's idempotency key as its dedupe key; None if the client
    gave no such key."""
    own = event.client_key
    if own is None:
        return None
    return replace(event, dedupe_key=own.dedupe_key, fingerprint=own.fingerprint)


def _key_conflict(event: MessageEvent) -> Work[Duplicate | None]:
    """Returns an earlier, different request with the same idempotency key; None if there is no such
    request."""
    keyed = _keyed(event)
    earlier = (yield from inbox.find(keyed)) if keyed else None
    return earlier if earlier and not earlier.same else None


def _place(call: CallId) -> tuple[int, int]:
    """Returns the place of the call's result in the transcript of its turn: step and index."""
    place = parse_call_id(call)
    assert place is not None, "only calls of ours wait for a client"
    return place.step, place.index + 1


def _check(row: TurnRow, waiting: list[CallId], results: tuple[ToolMessage, ...]) -> None:
    """Raises ResultsRefused if the result of a waiting call is missing, or if a result belongs to a
    call that does not wait."""
    given = [result.call for result in results]
    if row.state != "suspended" or not waiting:
        raise _closed(given[0], expired=row.code == "tool_results_expired")
    if missing := [call for call in waiting if call not in given]:
        named = ", ".join(map(repr, missing))
        message = f"The results of these tool calls are missing: {named}. Send all at once."
        raise ResultsRefused(400, "missing_tool_results", message)
    if unknown := [call for call in given if call not in waiting]:
        message = f"The tool call {unknown[0]!r} does not wait for a result."
        raise ResultsRefused(400, "unknown_tool_call", message)


def _refuse_expired(row: TurnRow, results: tuple[ToolMessage, ...]) -> Work[None]:
    """Raises ResultsRefused if the tool call of the first result has expired. In most cases, the
    turn is resumed when the call expires. But the turn stays suspended if it also waits for the
    answer to a question, so the result of an expired call can still arrive."""
    decisions = yield from questions.decisions(row.id)
    if isinstance(decisions.get(results[0].call), Expired):
        raise _closed(results[0].call, expired=True)


def _check_nothing_else_is_open(
    row: TurnRow, waiting: list[CallId], open_ones: list[OpenQuestion]
) -> Work[None]:
    """The step of the client's calls may also have calls of the agent's own tools. Raises
    ResultsRefused if one of these calls has no result yet.

    The client must then send its results without further messages, because no model accepts a
    message between a call and its result.
    """
    if open_ones:
        raise ResultsRefused(
            409,
            "question_open",
            "A question is open in the same step. Send the results without further messages,"
            f" then answer the question: {_asked(open_ones)}",
        )
    own = yield from transcript.of_turn(row.id)
    if any(call.id not in waiting for call in unanswered(own)):
        message = (
            "Nobody answered a question of the same step in time. Send the results without further"
            " messages; the messages can follow after the answer."
        )
        raise ResultsRefused(409, "question_expired", message)


def _closed(call: CallId, *, expired: bool) -> ResultsRefused:
    code = "tool_call_expired" if expired else "tool_call_closed"
    why = "its time is over" if expired else "its turn has ended or went on without it"
    message = f"The tool call {call!r} is no longer open: {why}. Ask again."
    return ResultsRefused(400, code, message)


def _repeated(repeated: Repeated, row: TurnRow, open_ones: list[OpenQuestion]) -> TakenResults:
    receipt = repeated.receipt
    if isinstance(receipt, Duplicate) and not receipt.same:
        message = "Other results were sent for these tool calls before, and were used."
        raise ResultsRefused(409, "tool_results_conflict", message)
    if receipt.after:
        return TakenResults(receipt=receipt, claim=repeated.claim)
    # The receipt has no `after` if a question was open when the results first arrived. So the
    # results did not resume the turn at that time.
    if open_ones:
        return TakenResults(receipt=Accepted(id=receipt.id, reply=_asked(open_ones)))
    followed = Accepted(id=receipt.id, turn=row.id, after=row.epoch * EVENTS_PER_CLAIM)
    return TakenResults(receipt=followed, claim=repeated.claim)


def _asked(open_ones: list[OpenQuestion]) -> str:
    return SEGMENT_SEPARATOR.join(question.prompt for question in open_ones)
