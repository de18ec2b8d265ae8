"""The transactions that open, resume and close turns."""

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from hermes.control.caches import HistoryCache, PromptCache
from hermes.control.event_content import has_files, marked_as_edited, new_messages
from hermes.control.message_parts import whole_message
from hermes.control.placement import Placement
from hermes.control.turn_inputs import is_detached, new_turn
from hermes.state import (
    deliveries,
    inbox,
    questions,
    session_lock,
    sessions,
    steering,
    transcript,
    turns,
)
from hermes.state.codec import Recorded, record
from hermes.state.compactions import Span
from hermes.state.inbox import Waiting
from hermes.state.sessions import SessionRow
from hermes.state.transcript import QUESTION_STEP, History, TranscriptWriter
from hermes.state.turns import EVENTS_PER_CLAIM, TurnRow
from hermes.types.agents import HostedAgent
from hermes.types.events import TurnFinished, UsageReported
from hermes.types.identity import (
    AgentId,
    FolderId,
    OwnerId,
    PersonId,
    SessionKey,
    Target,
    TurnId,
)
from hermes.types.messages import (
    Asked,
    AssistantMessage,
    Content,
    Message,
    MessageEvent,
    UserMessage,
)
from hermes.types.store import Work
from hermes.types.turns import (
    Completed,
    Failed,
    Outcome,
    Prompt,
    Stopped,
    Suspended,
    Turn,
)
from hermes.types.value import Value

log = logging.getLogger(__name__)

PROMPT_IDLE_SECONDS = 3600.0
"""Seconds without a message after which a session gets a new prompt. By then providers no longer
cache the old prompt, so the new prompt costs no more than the old one."""
GIVEN_UP = (
    "I could not resume my work on your message, because its record in the store can't be read."
    " Please send the message again."
)
UNREADABLE_TURN = Failed(reason=GIVEN_UP, code="unreadable")


class Claim(Value):
    """A turn that this process runs, and the right to run it. This process loses the right when
    another process increments the epoch (the number of the claim) in the turn's row."""

    turn: Turn
    row: TurnRow
    writer: TranscriptWriter
    detached: bool
    """Whether the turn continues without readers."""
    said: tuple[str, ...] = ()
    """Texts of earlier steps that were not sent to a chat yet."""
    recovered: bool = False
    """Whether the turn was taken over from a process that died."""
    before: History | None = None
    """The history of the session as it was stored when the turn was opened."""
    spans: tuple[Span, ...] = ()
    """For each message of the history, the stored rows that it represents."""


class Closing(Value):
    """The end of a turn, ready to be committed."""

    outcome: Outcome
    step: int
    """The step of the last model call."""
    first_seq: int
    recorded: list[Recorded]
    content: Content | None
    """The content of the delivery to the chat."""
    usage: UsageReported
    prompt: Prompt | None = None
    """The prompt that was written in this run and is not stored yet."""
    question_ids: tuple[str, ...] = ()


class TurnTransactions:
    """The transactions with which one process changes the rows of its turns."""

    def __init__(
        self,
        owner: OwnerId,
        agents: Mapping[AgentId, HostedAgent],
        placement: Placement | None = None,
    ) -> None:
        self.owner = owner
        self.placement = placement or Placement()
        self.histories = HistoryCache()
        self._prompts = PromptCache()
        self._agents = agents

    def open(
        self,
        id: str,
        event: MessageEvent,
        key: SessionKey,
        person: PersonId | None,
        now: float,
        folder: FolderId | None = None,
        *,
        edited: bool = False,
    ) -> Work[Claim]:
        """Opens the turn that answers this message. If the message has waited, `folder` is the
        folder with the files that the turn needs. `edited` says that the message replaces a version
        whose turn was stopped. The new turn may have taken over that turn's delivery."""
        body, source = event.body, event.source
        transient = isinstance(body, Asked) and body.stateless
        new = new_messages(event)
        session: SessionRow | None = None
        if not transient:
            session = yield from sessions.touch(key, source, person, _title(new), now)
        if folder is None and has_files(new):
            # The attachments of a message that has not waited are in the folder of this process.
            folder = self.placement.folder
        if session and folder and folder != session.folder:
            yield from sessions.use_folder(str(key), session.generation, folder)
        row = TurnRow(
            id=TurnId(id),
            session=str(key),
            person=person,
            account=source.account,
            state="running",
            owner=self.owner,
            epoch=1,
            trigger=event.origin.trigger,
            transient=transient,
            generation=session.generation if session else 0,
            steps=0,
            seq=0,
            shown=0,
            stop_requested=None,
            reason=None,
            code=None,
            started_at=now,
            workspace=self._agents[key.agent].profile.workspace,
            folder=folder or (session.folder if session else None),
        )
        yield from turns.insert(row, key.agent, source.chat_id)
        claim = self._claim(row, key, event, session=session)
        if session is None:
            return _with_history(claim, new)
        prompt = yield from self._prompt_of(session, now)
        before = yield from transcript.history(row.session, self._known(row, session))
        spans = list(before.spans)
        for index, message in enumerate(new):
            number = yield from transcript.append(claim.writer, QUESTION_STEP, index, message, now)
            spans.append((number, number))
        if claim.turn.reply_to and not (edited and (yield from deliveries.open_of(row.id))):
            yield from deliveries.owe(claim.turn.reply_to, None, key.agent, row.id, now)
        claim = _with_history(claim, (*before.messages, *new), prompt, before.size)
        return replace(claim, before=before, spans=tuple(spans))

    def open_next(self, session: str, now: float) -> Work[Claim | None]:
        """Opens the turn of the session's oldest waiting message, if there is one.

        If the turn needs files that only other nodes have, this message and the later messages are
        left to those nodes. If further parts of the message may still arrive, nothing is opened
        yet. A message that can't be read is given up, so that it does not affect other turns.
        """
        key = SessionKey.parse(session)
        while waiting := (yield from inbox.first_pending(session, self.owner)):
            if not self.placement.has(waiting.folder) or waiting.not_before > now:
                return None
            if waiting.event is not None:
                return (yield from self.open_waiting(waiting, waiting.event, key, now))
            yield from self.give_up_waiting(waiting, key, now)
        return None

    def open_waiting(
        self, waiting: Waiting, event: MessageEvent, key: SessionKey, now: float
    ) -> Work[Claim]:
        """Opens the turn of a message that has waited, with all its parts."""
        id, person, edited = waiting.id, waiting.person, waiting.replaces is not None
        yield from inbox.bind(id, id)
        if waiting.awaits:
            event = (yield from whole_message(id)) or event
        if edited:
            event = marked_as_edited(event)
        return (yield from self.open(id, event, key, person, now, waiting.folder, edited=edited))

    def resume(self, row: TurnRow, now: float) -> Work[Claim]:
        """Resumes a turn whose process died, or whose questions were decided."""
        yield from session_lock.lock(row.session)
        epoch = yield from turns.claim(row.id, row.epoch, self.owner)
        event = yield from inbox.event_of(row.id)
        request = (yield from inbox.event_of(row.request)) if row.request else event
        key = SessionKey.parse(row.session)
        own = yield from transcript.of_turn(row.id)
        session, prompt = None, None
        found = History(generation=0, messages=(*new_messages(event), *own))
        if not row.transient:
            session = yield from sessions.get(row.session)
            prompt = yield from self._prompt_of(session, now)
            found = yield from transcript.history(row.session, self._known(row, session))
        started = yield from turns.started_calls(row.id)
        decisions = yield from questions.decisions(row.id)
        died = row.state == "running"
        running = replace(row, epoch=epoch, state="running")
        claim = self._claim(running, key, event, request, session)
        if claim.turn.reply_to and not died:
            yield from deliveries.owe(claim.turn.reply_to, None, key.agent, row.id, now)
        turn = replace(
            claim.turn,
            history=found.messages,
            prompt=prompt,
            decisions=decisions,
            interrupted=frozenset(started) if died else frozenset(),
            steps=row.steps,
        )
        claim = replace(claim, turn=turn, spans=found.spans, said=_texts(own)[row.shown :])
        return replace(claim, recovered=died, detached=is_detached(event, decisions.values()))

    def run_again(self, row: TurnRow, now: float) -> Work[Claim | None]:
        """Resumes a turn that failed, from its last checkpoint. No tool runs twice."""
        yield from turns.reopen(row)
        yield from inbox.bind(row.id, row.id)
        return (yield from self.resume_if_here(replace(row, state="suspended"), now))

    def resume_if_here(self, row: TurnRow, now: float) -> Work[Claim | None]:
        """Resumes a suspended turn that waits for nobody any more. If its files are on other nodes,
        these nodes resume the turn, and the result is None."""
        return (yield from self.resume(row, now)) if self.placement.has(row.folder) else None

    def close(self, claim: Claim, closing: Closing, now: float) -> Work[Claim | None]:
        """Commits the end of the turn, and opens the next turn of the session."""
        row = claim.row
        yield from session_lock.lock(row.session)
        yield from self._end(claim, closing, now)
        if closing.prompt and not row.transient:
            yield from sessions.keep_prompt(row.session, row.generation, closing.prompt)
        if claim.turn.summarise and isinstance(closing.outcome, Completed | Suspended):
            yield from sessions.set_summarise(row.session, wanted=False)
        if row.trigger == "api":
            yield from turns.keep_events(row.id, closing.first_seq, closing.recorded)
        if claim.turn.reply_to:
            yield from self._complete_delivery(claim, closing, now)
        if isinstance(closing.outcome, Suspended):
            return (yield from self._resume_stopped(row.id, now))
        yield from inbox.finish(row.id)
        if row.transient:
            return None
        return (yield from self.open_next(row.session, now))

    def give_up(self, row: TurnRow, now: float, failed: Failed = UNREADABLE_TURN) -> Work[None]:
        """Closes a turn that can't be resumed, and notifies its chat."""
        key = SessionKey.parse(row.session)
        yield from session_lock.lock(row.session)
        epoch = yield from turns.claim(row.id, row.epoch, self.owner)
        # If a row is damaged, the calls without a result get one later, when the history is read.
        with suppress(msgspec.DecodeError):
            cut_off = "Not finished: the turn failed."
            yield from transcript.answer_open_calls(_transcript_writer(row, key), cut_off, now)
        why, notice = (failed.reason, failed.code), Content(text=failed.reason)
        yield from turns.close(row.id, epoch, "failed", now, reason=why, temporary=failed.temporary)
        if row.state == "suspended":
            yield from deliveries.owe_again(row.id, notice, key.agent, now)
        else:
            yield from deliveries.complete(row.id, notice, now)
        if row.trigger == "api":
            yield from _keep_failure(row.id, epoch, failed)
        yield from inbox.finish(row.id)

    def give_up_waiting(self, waiting: Waiting, key: SessionKey, now: float) -> Work[None]:
        """Gives up a waiting message that can't be read. Notifies its chat or its API client."""
        log.error("message %s, which waits in %s, can't be read: given up", waiting.id, key)
        yield from inbox.bind(waiting.id, waiting.id, "done")
        yield from inbox.finish(waiting.id)
        target = Target(account=waiting.account, chat_id=waiting.chat_id, thread_id=key.thread)
        # A chat got a notice when its message was queued, so there is a delivery to the chat. An
        # API client has no delivery: it reads an event.
        if (yield from deliveries.has_been_owed(target.account, target.chat_id)):
            yield from deliveries.owe(target, Content(text=GIVEN_UP), key.agent, None, now)
        else:
            yield from _keep_failure(TurnId(waiting.id), 1, UNREADABLE_TURN)

    def _end(self, claim: Claim, closing: Closing, now: float) -> Work[None]:
        """Commits the last messages of the turn and its new state."""
        row = claim.row
        match closing.outcome:
            case Completed(message=message):
                yield from transcript.append(claim.writer, closing.step, 0, message, now)
                yield from turns.close(row.id, row.epoch, "completed", now, closing.usage)
            case Suspended(questions=asked, calls=calls):
                yield from turns.close(row.id, row.epoch, "suspended", now, closing.usage)
                expires_at = now + claim.turn.profile.budget.client_seconds
                ids = closing.question_ids
                yield from questions.ask_all(row, ids, asked, calls, expires_at, now)
            case Stopped(reason=reason, partial=partial):
                cut_off = "Not finished: the turn was stopped."
                yield from transcript.answer_open_calls(claim.writer, cut_off, now)
                if partial:
                    cut = AssistantMessage(text=partial)
                    yield from transcript.append(claim.writer, closing.step, 0, cut, now)
                why = (reason, "")
                yield from turns.close(row.id, row.epoch, "stopped", now, closing.usage, why)
            case Failed(reason=reason, code=code, temporary=temporary):
                cut_off = "Not finished: the turn failed."
                yield from transcript.answer_open_calls(claim.writer, cut_off, now)
                why = (reason, code)
                yield from turns.close(
                    row.id, row.epoch, "failed", now, closing.usage, why, temporary=temporary
                )

    def _complete_delivery(self, claim: Claim, closing: Closing, now: float) -> Work[None]:
        """Makes the delivery of the turn ready. If the turn was stopped because its message was
        edited, passes the delivery on to the turn of the new text."""
        row = claim.row
        if isinstance(closing.outcome, Stopped):
            following = yield from steering.replacement_of(row.id, row.session)
            if following is not None:
                yield from deliveries.pass_on(row.id, TurnId(following))
                return
        yield from deliveries.complete(row.id, closing.content, now)

    def _known(self, row: TurnRow, session: SessionRow) -> History:
        known = self.histories.get(row.session)
        fresh = History(
            generation=row.generation, since=session.created_at, compaction=session.compaction
        )
        if known is None or known.generation != fresh.generation or known.since != fresh.since:
            return fresh
        return known if known.compaction == fresh.compaction else fresh

    def _prompt_of(self, session: SessionRow, now: float) -> Work[Prompt | None]:
        """Returns the session's prompt; None if the session needs a new prompt."""
        idle = now - (session.used_before or now)
        if session.prompt is None or idle > PROMPT_IDLE_SECONDS:
            return None
        known = self._prompts.get(session.prompt)
        if known is None:
            known = yield from sessions.prompt_of(session.prompt)
            if known is not None:
                # The key is a hash of the prompt, so the cached prompt is right even after a
                # rollback.
                self._prompts.keep(session.prompt, known)
        return known

    def _resume_stopped(self, turn: TurnId, now: float) -> Work[Claim | None]:
        """If a stop was requested while the turn was being suspended, resumes the turn, so that it
        stops. The request itself found no running turn to interrupt."""
        row = yield from turns.get(turn)
        if row is None or not row.stop_requested:
            return None
        return (yield from self.resume(row, now))

    def agent(self, id: AgentId) -> HostedAgent:
        """Returns an agent that is hosted here."""
        return self._agents[id]

    def hosts(self, session: str) -> bool:
        """Returns whether the session's agent is hosted here."""
        return SessionKey.parse(session).agent in self._agents

    def writer(self, row: TurnRow) -> TranscriptWriter:
        """Returns a writer that adds messages of this turn to the transcript."""
        return _transcript_writer(row, SessionKey.parse(row.session))

    def _claim(
        self,
        row: TurnRow,
        key: SessionKey,
        event: MessageEvent,
        request: MessageEvent | None = None,
        session: SessionRow | None = None,
    ) -> Claim:
        """Returns the claim on the turn that `event` opened. `request` is the later message that
        has replaced the options of the turn, if there is one."""
        turn = new_turn(
            row,
            key,
            event,
            request or event,
            self.placement.profile_of(row, self._agents[key.agent].profile),
            session,
        )
        writer = _transcript_writer(row, key)
        return Claim(turn=turn, row=row, writer=writer, detached=is_detached(event))


def _transcript_writer(row: TurnRow, key: SessionKey) -> TranscriptWriter:
    return TranscriptWriter(
        turn=row.id,
        session=key,
        generation=row.generation,
        transient=row.transient,
        account=row.account,
        person=row.person,
    )


def _keep_failure(turn: TurnId, epoch: int, failed: Failed) -> Work[None]:
    """Stores the event that tells readers that the turn was given up."""
    finished = TurnFinished(
        outcome="failed", text=failed.reason, code=failed.code, status=failed.status
    )
    first = epoch * EVENTS_PER_CLAIM + 1
    yield from turns.keep_events(turn, first, record(first, [finished]))


def _title(messages: Sequence[Message]) -> str:
    return next((m.text or m.described for m in messages if isinstance(m, UserMessage)), "")


def _texts(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(m.text for m in messages if isinstance(m, AssistantMessage))


def _with_history(
    claim: Claim, history: tuple[Message, ...], prompt: Prompt | None = None, size: int = 0
) -> Claim:
    return replace(claim, turn=replace(claim.turn, history=history, prompt=prompt, size=size))
