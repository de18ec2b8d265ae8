"""Takes a message in: one transaction stores it and begins the work that it asks for."""

import time
from typing import Literal

from msgspec.structs import replace

from hermes.control.client_calls import ClientCalls
from hermes.control.commands import CommandTable, surface_of
from hermes.control.event_content import answer_text, files_of
from hermes.control.long_events import store_long_bodies
from hermes.control.repeats import repeat
from hermes.control.sightings import ChatSightings
from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.state import chats, deliveries, folders, inbox, session_lock, turns
from hermes.state.codec import record
from hermes.state.turns import EVENTS_PER_CLAIM, OpenQuestion, TurnRow
from hermes.types.commands import CommandContext, CommandReply, OpenTurn
from hermes.types.events import AgentEvent, TextDelta, TurnFinished
from hermes.types.identity import FolderId, PersonId, SessionKey, Target, TurnId, new_id
from hermes.types.messages import (
    APPROVE,
    DENY,
    Accepted,
    Asked,
    Content,
    Duplicate,
    Edited,
    MessageEvent,
    Pressed,
    Receipt,
    Refused,
)
from hermes.types.store import Store, Work
from hermes.types.value import Value


class IntakeResult(Value):
    """The result of storing a message: the work to start after the commit."""

    receipt: Receipt
    claim: Claim | None = None
    """The turn to run."""
    stop: TurnId | None = None
    """The turn to interrupt."""
    owed: Target | None = None
    """The chat that has a new delivery."""
    ended: bool = False
    """Whether the message ended a conversation."""


class Intake:
    def __init__(self, transactions: TurnTransactions, commands: CommandTable) -> None:
        self._transactions = transactions
        self._commands = commands
        self._client_calls = ClientCalls(transactions)

    def take(
        self,
        event: MessageEvent,
        key: SessionKey,
        person: PersonId,
        now: float,
        *,
        sighted: bool = False,
    ) -> Work[IntakeResult]:
        """Stores the message. If `sighted` is true, also records the message's chat in the
        directory of chats."""
        taken = yield from self._take_locked(event, key, person, now)
        if sighted:
            yield from chats.see(event.source, now)
        return taken

    def _take_locked(
        self, event: MessageEvent, key: SessionKey, person: PersonId, now: float
    ) -> Work[IntakeResult]:
        yield from session_lock.lock(str(key))
        if isinstance(event.body, Asked) and event.body.results:
            taken = yield from self._client_calls.take(event, event.body, key, person, now)
            return IntakeResult(receipt=taken.receipt, claim=taken.claim)
        if event.fingerprint and (repeated := (yield from repeat(self._transactions, event, now))):
            return IntakeResult(receipt=repeated.receipt, claim=repeated.claim)
        return (yield from self._take(event, key, person, now))

    def _take(
        self, event: MessageEvent, key: SessionKey, person: PersonId, now: float
    ) -> Work[IntakeResult]:
        if isinstance(event.body, Edited):
            return IntakeResult(receipt=Refused(reason="changed messages are not answered again"))
        if isinstance(event.body, Asked) and event.body.stateless:
            return (yield from self._begin(event, key, person, now))
        turn = yield from turns.open_in(str(key))
        if command := self._commands.find(event):
            action, argument = command
            agent = self._transactions.agent(key.agent)
            context = CommandContext(
                session=key,
                person=person,
                argument=argument,
                turn=_open_turn(turn),
                now=now,
                source=event.source,
                surface=surface_of(event),
                chat=event.origin.reply_to,
                profile=agent.profile,
                find_model=agent.find_model,
            )
            id = new_id()
            duplicate = yield from inbox.insert(
                id, event, key, person, self._transactions.owner, "done"
            )
            if duplicate:
                return IntakeResult(receipt=duplicate)
            done = yield from action(context)
            if unused := " ".join(file.label for file in files_of(event)):
                # A command can't use attachments, so the reply names the files that are dropped.
                done = replace(done, reply=f"{done.reply}\nNot used: {unused}")
            return (yield from self._tell(id, event, key, done, now))
        if turn and turn.state == "suspended":
            return (yield from self._answer(event, key, person, turn, now))
        if isinstance(event.body, Pressed):
            return IntakeResult(receipt=Refused(reason="this question is no longer open"))
        if turn is None:
            return (yield from self._start_or_wait(event, key, person, now))
        return (yield from self._queue(event, key, person, "after the current one", now))

    def _start_or_wait(
        self, event: MessageEvent, key: SessionKey, person: PersonId, now: float
    ) -> Work[IntakeResult]:
        """Handles a message to an idle session."""
        waiting, folder = yield from self._waiting_in(str(key))
        if not self._transactions.placement.has(folder):
            return (yield from self._leave(event, key, person, folder, now))
        if not waiting:
            return (yield from self._begin(event, key, person, now))
        return (yield from self._queue(event, key, person, "after the current one", now))

    def _waiting_in(self, session: str) -> Work[tuple[int, FolderId | None]]:
        """Returns the number of waiting messages of the session, and the folder with its files."""
        if self._transactions.placement.checked:
            return (yield from inbox.waiting_in(session))
        return (yield from inbox.count_pending(session)), None

    def _begin(
        self, event: MessageEvent, key: SessionKey, person: PersonId, now: float
    ) -> Work[IntakeResult]:
        id = new_id()
        duplicate = yield from inbox.insert(
            id, event, key, person, self._transactions.owner, "bound"
        )
        if duplicate:
            return IntakeResult(receipt=duplicate)
        claim = yield from self._transactions.open(id, event, key, person, now)
        return IntakeResult(receipt=Accepted(id=id, turn=id), claim=claim)

    def _leave(
        self,
        event: MessageEvent,
        key: SessionKey,
        person: PersonId,
        folder: FolderId | None,
        now: float,
    ) -> Work[IntakeResult]:
        """Leaves a message to the nodes that have the files of its session. Refuses the message if
        those nodes can't run it."""
        assert folder is not None, "a session without files can run here"
        attached = files_of(event)
        if not attached and not self._transactions.placement.terminal:
            return (yield from self._queue(event, key, person, None, now))
        # The other nodes can't run this message: they don't have its attachments, and they don't
        # run the messages of a terminal.
        place = yield from folders.place_of(folder)
        where = f"on {place.host}" if place else "on another machine"
        what = "send files there" if attached else "continue it there"
        reason = f"the files of this conversation are {where}: {what}, or begin a new one with /new"
        if event.origin.reply_to is None:
            return IntakeResult(receipt=Refused(reason=reason))
        id = new_id()
        duplicate = yield from inbox.insert(
            id, event, key, person, self._transactions.owner, "done"
        )
        if duplicate:
            return IntakeResult(receipt=duplicate)
        told = CommandReply(reply=f"Not accepted: {reason}.", failed=True)
        return (yield from self._tell(id, event, key, told, now))

    def _answer(
        self,
        event: MessageEvent,
        key: SessionKey,
        person: PersonId,
        turn: TurnRow,
        now: float,
    ) -> Work[IntakeResult]:
        """Handles a message to a turn that waits for a person. The message answers a question, or
        is queued."""
        open_ones = yield from turns.open_questions(turn.id)
        # If all questions have just expired, the turn waits for nobody and is about to be resumed.
        client_calls = () if open_ones else (yield from turns.open_client_calls(turn.id))
        if client_calls and isinstance(event.body, Asked):
            return (yield from self._go_on_without_results(event, key, person, turn, now))
        question = _meant(event, open_ones) if turn.person == person else None
        if question is None:
            if isinstance(event.body, Pressed):
                return IntakeResult(receipt=Refused(reason="this question is no longer open"))
            prompts = "; ".join(question.prompt for question in open_ones)
            return (
                yield from self._queue(event, key, person, f"once this is decided: {prompts}", now)
            )
        id = new_id()
        duplicate = yield from inbox.insert(
            id, event, key, person, self._transactions.owner, "done"
        )
        if duplicate:
            return IntakeResult(receipt=duplicate)
        state, answer = _decision(question, event)
        yield from turns.decide(question.id, state, answer, person, now)
        if len(open_ones) > 1:
            left = "; ".join(other.prompt for other in open_ones if other is not question)
            noted = CommandReply(reply=f"Noted. Still open: {left}")
            return (yield from self._tell(id, event, key, noted, now))
        yield from inbox.bind(id, turn.id, "done")
        yield from self._client_calls.give_up(turn, now)
        claim = yield from self._transactions.resume_if_here(turn, now)
        after = (turn.epoch + 1) * EVENTS_PER_CLAIM
        yield from inbox.set_after(id, after)
        return IntakeResult(receipt=Accepted(id=id, turn=turn.id, after=after), claim=claim)

    def _go_on_without_results(
        self, event: MessageEvent, key: SessionKey, person: PersonId, turn: TurnRow, now: float
    ) -> Work[IntakeResult]:
        """Handles a message without results that arrives while the turn waits for results of client
        tools."""
        id = new_id()
        duplicate = yield from self._insert_waiting(id, event, key, person)
        if duplicate:
            return IntakeResult(receipt=duplicate)
        yield from self._client_calls.end(turn, now)
        claim = yield from self._transactions.open_next(str(key), now)
        return IntakeResult(receipt=Accepted(id=id, turn=id), claim=claim)

    def _insert_waiting(
        self, id: str, event: MessageEvent, key: SessionKey, person: PersonId
    ) -> Work[Duplicate | None]:
        folder = self._transactions.placement.folder if files_of(event) else None
        owner = self._transactions.owner
        return (yield from inbox.insert(id, event, key, person, owner, folder=folder))

    def _queue(
        self, event: MessageEvent, key: SessionKey, person: PersonId, when: str | None, now: float
    ) -> Work[IntakeResult]:
        """Queues the message, and notifies its chat. `when` says when the message will be answered.
        If it is None, the chat gets no notice."""
        id = new_id()
        duplicate = yield from self._insert_waiting(id, event, key, person)
        if duplicate:
            return IntakeResult(receipt=duplicate)
        if when is None:
            return IntakeResult(receipt=Accepted(id=id, turn=id))
        position = yield from inbox.count_pending(str(key))
        text = f"Queued ({position}): I answer this {when}. /stop ends what is running."
        # The turn will have this id, so an API client can already wait for its events.
        receipt = Accepted(id=id, turn=id)
        target = event.origin.reply_to
        if target is None:
            return IntakeResult(receipt=receipt)
        yield from deliveries.owe(target, Content(text=text), key.agent, None, now)
        return IntakeResult(receipt=receipt, owed=target)

    def _tell(
        self, id: str, event: MessageEvent, key: SessionKey, done: CommandReply, now: float
    ) -> Work[IntakeResult]:
        """Sends this reply at once, without running a turn."""
        receipt = Accepted(id=id, reply=done.reply, failed=done.failed)
        if event.fingerprint:
            # The request may be repeated, so the reply is stored like the events of a turn.
            told: list[AgentEvent] = [TextDelta(text=done.reply), TurnFinished(outcome="completed")]
            yield from turns.keep_events(TurnId(id), 1, record(1, told))
        target = event.origin.reply_to
        if target is not None:
            yield from deliveries.owe(target, Content(text=done.reply), key.agent, None, now)
        return IntakeResult(receipt=receipt, stop=done.stop, owed=target, ended=done.ended)


async def store_message(
    store: Store,
    intake: Intake,
    sightings: ChatSightings,
    event: MessageEvent,
    key: SessionKey,
    person: PersonId,
) -> IntakeResult:
    """Stores the message durably. Also records its chat, unless that was done recently."""
    await store_long_bodies(store, event)
    now = time.time()
    sighted = sightings.is_due(event, now)
    taken = await store.run(intake.take, event, key, person, now, sighted=sighted)
    if sighted:
        sightings.note(event, now)
    return taken


def _open_turn(row: TurnRow | None) -> OpenTurn | None:
    if row is None:
        return None
    state: Literal["running", "suspended"]
    state = "suspended" if row.state == "suspended" else "running"
    return OpenTurn(id=row.id, state=state, steps=row.steps, started_at=row.started_at)


def _decision(question: OpenQuestion, event: MessageEvent) -> tuple[str, str | None]:
    """Returns the new state of the question, and the answer to store with it."""
    words = answer_text(event)
    if question.kind == "question":
        return "answered", words
    denied = words is not None and words.casefold() == DENY.casefold()
    approved = not denied and words in (question.choices or (APPROVE,))
    return ("approved", words) if approved else ("denied", None)


def _meant(event: MessageEvent, open_ones: list[OpenQuestion]) -> OpenQuestion | None:
    """Returns the question that the event answers. A text answers the oldest question. Only a
    `Pressed` event, which names its question, can answer an approval."""
    if isinstance(event.body, Pressed):
        wanted = event.body.question
        return next((question for question in open_ones if question.id == wanted), None)
    if answer_text(event) is None:
        return None
    return next((question for question in open_ones if question.kind == "question"), None)
