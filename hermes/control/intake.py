"""Takes a message in: one transaction stores it and begins the work that it asks for."""

import time
from typing import Literal

from msgspec.structs import replace

from hermes.control.client_calls import ClientCalls
from hermes.control.commands import CommandTable, surface_of
from hermes.control.decisions import Decisions
from hermes.control.edits import take_edit
from hermes.control.event_content import answer_text, files_of, with_text
from hermes.control.incoming import Incoming, IntakeResult, store_row, tell
from hermes.control.keys import session_key
from hermes.control.long_events import store_long_bodies
from hermes.control.repeats import repeat
from hermes.control.sightings import ChatSightings
from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.control.waiting_messages import WaitingMessages
from hermes.state import approvals, chats, folders, inbox, questions, session_lock, turns
from hermes.state.message_parts import awaited
from hermes.state.questions import OpenQuestion
from hermes.state.turns import TurnRow
from hermes.text.markdown import literal
from hermes.types.commands import (
    Action,
    CommandContext,
    CommandMessage,
    CommandReply,
    OpenTurn,
)
from hermes.types.identity import FolderId, PersonId, SessionKey
from hermes.types.messages import (
    Accepted,
    Asked,
    Duplicate,
    Edited,
    MessageEvent,
    Pressed,
    Refused,
)
from hermes.types.people import Role
from hermes.types.store import Store, Work

AFTER = "after the current one"
BACKGROUND = (
    "The person does not wait for this answer and writes about other things meanwhile. Begin the"
    " answer with a few words that say which task it belongs to."
)
"""Tells the model that its turn was started with /background."""


class Intake:
    def __init__(self, transactions: TurnTransactions, commands: CommandTable) -> None:
        self._transactions = transactions
        self._commands = commands
        self._client_calls = ClientCalls(transactions)
        self._decisions = Decisions(transactions, self._client_calls)
        self._waiting = WaitingMessages(transactions)

    def take(
        self,
        event: MessageEvent,
        key: SessionKey,
        person: PersonId,
        now: float,
        *,
        role: Role,
        sighted: bool = False,
    ) -> Work[IntakeResult]:
        """Stores the message of a sender with this role. If `sighted` is true, also records the
        message's chat in the list of known chats."""
        taken = yield from self._take_locked(event, key, person, role, now)
        if sighted:
            yield from chats.see(event.source, now)
        return taken

    def _take_locked(
        self, event: MessageEvent, key: SessionKey, person: PersonId, role: Role, now: float
    ) -> Work[IntakeResult]:
        yield from session_lock.lock(str(key))
        if isinstance(event.body, Asked) and event.body.results:
            taken = yield from self._client_calls.take(event, event.body, key, person, now)
            return IntakeResult(receipt=taken.receipt, claim=taken.claim)
        if event.fingerprint and (repeated := (yield from repeat(self._transactions, event, now))):
            return IntakeResult(receipt=repeated.receipt, claim=repeated.claim)
        return (yield from self._take(event, key, person, role, now))

    def _take(
        self, event: MessageEvent, key: SessionKey, person: PersonId, role: Role, now: float
    ) -> Work[IntakeResult]:
        message = Incoming(event=event, key=key, person=person)
        if isinstance(event.body, Edited):
            taken = yield from take_edit(self._transactions, event, event.body, key, person, now)
            return IntakeResult(receipt=taken.receipt, stop=taken.stop)
        command = self._commands.find(event)
        stateless = isinstance(event.body, Asked) and event.body.stateless
        if stateless and command is None:
            return (yield from self._begin(message, now))
        turn = None if stateless else (yield from turns.open_in(str(key)))
        if command is not None:
            action, argument = command
            return (yield from self._run_command(message, role, action, argument, turn, now))
        if decided := (yield from self._take_decision(message, now)):
            return decided
        return (yield from self._take_message(message, turn, now))

    def _take_decision(self, message: Incoming, now: float) -> Work[IntakeResult | None]:
        """Handles a message that decides an approval. Returns None for any other message."""
        body = message.event.body
        if not isinstance(body, Pressed):
            return (yield from self._decisions.take_word(message, now))
        approval = yield from approvals.find(body.question)
        if approval is None or not self._transactions.hosts(approval.session):
            return None
        return (yield from self._decisions.take_press(message, approval, body, now))

    def _run_command(
        self,
        message: Incoming,
        role: Role,
        action: Action,
        argument: str,
        turn: TurnRow | None,
        now: float,
    ) -> Work[IntakeResult]:
        event, key = message.event, message.key
        agent = self._transactions.agent(key.agent)
        context = CommandContext(
            session=key,
            person=message.person,
            role=role,
            argument=argument,
            turn=_open_turn(turn),
            now=now,
            source=event.source,
            surface=surface_of(event),
            chat=event.origin.reply_to,
            profile=agent.profile,
            find_model=agent.find_model,
        )
        stored = yield from store_row(message, self._transactions.owner, "done")
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        done = yield from action(context)
        if done.decision is not None:
            return (yield from self._decisions.take_command(message, stored, done.decision, now))
        if done.message is not None:
            return (yield from self._send(message, stored, done, done.message, turn, now))
        if unused := " ".join(file.label for file in files_of(event)):
            # A command can't use attachments, so the reply names the files that are dropped.
            done = replace(done, reply=f"{done.reply}\nNot used: {unused}")
        return (yield from tell(stored, event, key, done, now))

    def _send(
        self,
        command: Incoming,
        row: str,
        done: CommandReply,
        wanted: CommandMessage,
        turn: TurnRow | None,
        now: float,
    ) -> Work[IntakeResult]:
        """Handles the message that a command such as /retry sends to the agent."""
        event = with_text(command.event, wanted.text, wanted.attachments)
        if wanted.background:
            claim = yield from self._open_in_background(command, row, event, now)
            told = yield from tell(row, command.event, command.key, done, now)
            return replace(told, claim=claim)
        message = replace(command, event=event, row=row, mode=wanted.mode)
        return (yield from self._take_message(message, turn, now))

    def _open_in_background(
        self, command: Incoming, row: str, event: MessageEvent, now: float
    ) -> Work[Claim]:
        """Opens a turn for the message in a new session. The answer is sent to the chat in which
        the command was written."""
        source = replace(event.source, thread_id=f"background-{row}")
        moved = replace(event, source=source, origin=replace(event.origin, place=BACKGROUND))
        key = session_key(command.key.agent, source)
        yield from session_lock.lock(str(key))
        folder = self._transactions.placement.folder if files_of(event) else None
        yield from inbox.rewrite(row, moved, key, "bound", folder)
        return (yield from self._transactions.open(row, moved, key, command.person, now))

    def _take_message(
        self, message: Incoming, turn: TurnRow | None, now: float
    ) -> Work[IntakeResult]:
        """Handles a message that is not a command."""
        if turn and turn.state == "suspended":
            return (yield from self._answer(message, turn, now))
        if isinstance(message.event.body, Pressed):
            return IntakeResult(receipt=Refused(reason="this question is no longer open"))
        if turn is None:
            return (yield from self._start_or_wait(message, now))
        return (yield from self._waiting.take(message, turn, AFTER, now))

    def _start_or_wait(self, message: Incoming, now: float) -> Work[IntakeResult]:
        """Handles a message to an idle session."""
        waiting, folder = yield from self._waiting_in(str(message.key))
        if waiting and (joined := (yield from self._waiting.join(message, now))):
            return joined
        if not self._transactions.placement.has(folder):
            return (yield from self._leave(message, folder, now))
        if waiting:
            return (yield from self._waiting.queue(message, AFTER, now))
        if awaited(message.event):
            return (yield from self._waiting.queue(message, None, now))
        return (yield from self._begin(message, now))

    def _waiting_in(self, session: str) -> Work[tuple[int, FolderId | None]]:
        """Returns the number of the session's waiting messages, and the folder with the session's
        files."""
        if self._transactions.placement.checked:
            return (yield from inbox.waiting_in(session))
        return (yield from inbox.count_pending(session)), None

    def _begin(self, message: Incoming, now: float) -> Work[IntakeResult]:
        stored = yield from store_row(message, self._transactions.owner, "bound")
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        event, key, person = message.event, message.key, message.person
        claim = yield from self._transactions.open(stored, event, key, person, now)
        return IntakeResult(receipt=Accepted(id=stored, turn=stored), claim=claim)

    def _leave(self, message: Incoming, folder: FolderId | None, now: float) -> Work[IntakeResult]:
        """Stores a message for the nodes (machines) that have the files of its session. Refuses the
        message if those nodes can't answer it."""
        assert folder is not None, "a session without files can run here"
        attached = files_of(message.event)
        if not attached and not self._transactions.placement.terminal:
            return (yield from self._waiting.queue(message, None, now))
        # The other nodes can't answer this message, so it is refused. They don't have its
        # attachments, or the message comes from a terminal, which runs its turns itself.
        place = yield from folders.place_of(folder)
        where = f"on {place.host}" if place else "on another machine"
        what = "send files there" if attached else "continue it there"
        reason = f"the files of this conversation are {where}: {what}, or begin a new one with /new"
        if message.event.origin.reply_to is None and message.row is None:
            return IntakeResult(receipt=Refused(reason=reason))
        stored = yield from store_row(message, self._transactions.owner, "done")
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        told = CommandReply(reply=f"Not accepted: {reason}.", failed=True)
        return (yield from tell(stored, message.event, message.key, told, now))

    def _answer(self, message: Incoming, turn: TurnRow, now: float) -> Work[IntakeResult]:
        """Handles a message to a turn that waits for a person. The message answers a question, or
        is queued."""
        event, person = message.event, message.person
        open_ones = yield from questions.open_questions(turn.id)
        # If all questions have just expired, the turn waits for nobody and is about to be resumed.
        client_calls = () if open_ones else (yield from questions.open_client_calls(turn.id))
        if client_calls and isinstance(event.body, Asked):
            return (yield from self._go_on_without_results(message, turn, now))
        mine = turn.person == person and message.mode is None
        question = _meant(event, open_ones) if mine else None
        if question is None:
            if isinstance(event.body, Pressed):
                return IntakeResult(receipt=Refused(reason="this question is no longer open"))
            if isinstance(event.body, Asked) and (
                waiting := (yield from self._decisions.ask_again(message, turn.id, now))
            ):
                return waiting
            prompts = "; ".join(literal(question.brief) for question in open_ones)
            when = f"once this is decided: {prompts}"
            return (yield from self._waiting.take(message, turn, when, now))
        stored = yield from store_row(message, self._transactions.owner, "done")
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        answer, name = answer_text(event), event.source.user_name
        yield from questions.decide(question.id, "answered", answer, person, now, name)
        return (yield from self._decisions.resume(message, stored, turn, now))

    def _go_on_without_results(
        self, message: Incoming, turn: TurnRow, now: float
    ) -> Work[IntakeResult]:
        """Handles a message that arrives while the turn waits for results of client tools, and that
        contains no such results."""
        stored = yield from self._waiting.store(message)
        if isinstance(stored, Duplicate):
            return IntakeResult(receipt=stored)
        yield from self._client_calls.end(turn, now)
        claim = yield from self._transactions.open_next(str(message.key), now)
        return IntakeResult(receipt=Accepted(id=stored, turn=stored), claim=claim)


async def store_message(
    store: Store,
    intake: Intake,
    sightings: ChatSightings,
    event: MessageEvent,
    key: SessionKey,
    person: PersonId,
    role: Role,
) -> IntakeResult:
    """Stores the message durably. Also records its chat, unless that was done recently."""
    await store_long_bodies(store, event)
    now = time.time()
    sighted = sightings.is_due(event, now)
    taken = await store.run(intake.take, event, key, person, now, role=role, sighted=sighted)
    if sighted:
        sightings.note(event, now)
    return taken


def _open_turn(row: TurnRow | None) -> OpenTurn | None:
    if row is None:
        return None
    state: Literal["running", "suspended"]
    state = "suspended" if row.state == "suspended" else "running"
    return OpenTurn(id=row.id, state=state, steps=row.steps, started_at=row.started_at)


def _meant(event: MessageEvent, open_ones: list[OpenQuestion]) -> OpenQuestion | None:
    """Returns the open question that the event answers. A text answers the oldest open question.
    Approvals are left out, because `Decisions` handles them."""
    plain = [question for question in open_ones if question.kind == "question"]
    if isinstance(event.body, Pressed):
        wanted = event.body.question
        return next((question for question in plain if question.id == wanted), None)
    return plain[0] if plain and answer_text(event) is not None else None
