"""Runs a claimed turn to its end: runs the agent, enforces its limits and commits its steps."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import anyio
from msgspec.structs import replace

from hermes.control.event_hub import EventHub, EventLog
from hermes.control.outbox import Outbox
from hermes.control.persistence import persist
from hermes.control.steering import enter_turn
from hermes.control.turn_log import log_finished
from hermes.control.turn_transactions import Claim, Closing, TurnTransactions
from hermes.state import compactions, folders, session_lock, sessions, transcript, turns
from hermes.state.compactions import Condensed
from hermes.streaming.final import final_content
from hermes.streaming.fold import View
from hermes.types.agents import HostedAgent
from hermes.types.errors import ClaimLost
from hermes.types.events import (
    NO_USAGE,
    AgentEvent,
    FinishReason,
    Notice,
    QuestionAsked,
    SegmentDiscarded,
    TurnFinished,
)
from hermes.types.execution import Sandbox, SandboxScope
from hermes.types.identity import (
    AgentId,
    CallId,
    FolderId,
    Principal,
    SessionKey,
    Source,
    TurnId,
    new_id,
)
from hermes.types.messages import AssistantMessage, Content, ToolMessage, UserMessage
from hermes.types.people import Role
from hermes.types.store import Store, Work
from hermes.types.turns import Completed, Failed, Outcome, Prompt, Stopped, Suspended

log = logging.getLogger(__name__)

Why = Literal["stop", "shutdown", "unread", "lost"]
PROCESSES_SECONDS = 20.0
"""Time limit in seconds for ending the background processes of a stateless request."""


class TurnRunner:
    """Runs turns, and holds their cancel scopes so that they can be stopped."""

    def __init__(
        self,
        store: Store,
        transactions: TurnTransactions,
        hub: EventHub,
        outbox: Outbox,
        agents: Mapping[AgentId, HostedAgent],
    ) -> None:
        self._store = store
        self._transactions = transactions
        self._hub = hub
        self._outbox = outbox
        self._agents = agents
        self._scopes: dict[TurnId, anyio.CancelScope] = {}
        self._whys: dict[TurnId, Why] = {}
        self._fleeting: set[TurnId] = set()
        """Turns that are stopped when their last reader leaves."""
        self._steered: set[TurnId] = set()
        """Turns that must read new messages of people before their next model call."""
        self.on_closed: Callable[[Claim, Outcome], None] = lambda claim, outcome: None
        self.role_of: Callable[[Source, Principal | None], Role] = lambda source, who: Role.USER
        """Returns the role of the person who sent the message that a turn answers."""

    def runs(self, turn: TurnId) -> bool:
        return turn in self._scopes

    def is_fleeting(self, turn: TurnId) -> bool:
        return turn in self._fleeting

    def expect(self, claim: Claim) -> None:
        """Registers a committed turn that is about to run. From now on it can be stopped."""
        if claim.before is not None:
            self._transactions.histories.keep(claim.row.session, claim.before)
        self._scopes[claim.turn.id] = anyio.CancelScope()
        self._hub.expect(claim.turn.id, claim.row.epoch)
        if claim.row.epoch > 1:
            # Messages may have arrived while the turn was suspended or no process ran it. The turn
            # must read them before its next model call.
            self._steered.add(claim.turn.id)
        if not claim.detached:
            self._fleeting.add(claim.turn.id)

    def steer(self, turn: TurnId) -> None:
        """Makes the turn read new messages of people before its next model call."""
        if turn in self._scopes:
            self._steered.add(turn)

    def stop(self, turn: TurnId, why: Why) -> bool:
        """Cancels the turn. Returns False if the turn does not run here."""
        scope = self._scopes.get(turn)
        if scope is not None:
            self._whys.setdefault(turn, why)
            scope.cancel()
        return scope is not None

    def stop_all(self, why: Why) -> set[TurnId]:
        """Interrupts all turns that run in this process. Returns their ids."""
        running = set(self._scopes)
        for turn in running:
            self.stop(turn, why)
        return running

    async def run(self, claim: Claim) -> Claim | None:
        """Runs a registered turn; returns the next turn of the session, or None."""
        live = self._hub.begin(claim.turn.id, claim.row.epoch)
        if claim.recovered:
            live.emit(SegmentDiscarded(from_seq=claim.row.seq + 1))
        folder = self._transactions.placement.folder
        checkpoint = TurnCheckpoint(self._store, claim, live, self._steered, folder)
        try:
            if claim.turn.reply_to is None:
                outcome = await self._outcome(claim, live, checkpoint)
            else:
                async with self._outbox.preview(claim, live, claim.turn.reply_to):
                    outcome = await self._outcome(claim, live, checkpoint)
            if outcome is None:
                return None
            if claim.turn.stateless and checkpoint.steps and not isinstance(outcome, Suspended):
                # The processes are ended before the commit. If the gateway crashes before all of
                # them have ended, the turn is resumed and ends the rest.
                await end_processes(self._agents[claim.turn.agent], claim.turn.session)
            following = await self._close(claim, live, checkpoint, outcome)
            self.on_closed(claim, outcome)
        except ClaimLost as lost:
            log.warning("%s", lost)
            return None
        finally:
            self._hub.end(live)
            self._scopes.pop(claim.turn.id, None)
            self._whys.pop(claim.turn.id, None)
            self._fleeting.discard(claim.turn.id)
            self._steered.discard(claim.turn.id)
        if following is not None:
            self.expect(following)
        return following

    async def _outcome(
        self, claim: Claim, live: EventLog, checkpoint: "TurnCheckpoint"
    ) -> Outcome | None:
        """Returns the outcome of the agent's run; None if another process continues the turn."""
        # The role is determined when the turn starts or resumes, so that a changed role applies at
        # once.
        turn = replace(claim.turn, role=self.role_of(claim.turn.source, claim.turn.principal))
        if claim.row.stop_requested:
            return Stopped(reason="by you")
        scope = self._scopes[turn.id]
        scope.deadline = anyio.current_time() + turn.profile.budget.seconds
        with scope:
            try:
                return await self._agents[turn.agent].runner.run(turn, live.emit, checkpoint)
            except ClaimLost as lost:
                log.warning("%s", lost)
                return None
            except Exception:
                log.exception("turn %s failed", turn.id)
                reason = "An internal error occurred; the log describes it."
                return Failed(reason=reason, temporary=True)
        match self._whys.get(turn.id):
            case "shutdown" | "lost":
                return None
            case "stop":
                return Stopped(reason="by you", partial=live.open_text())
            case "unread":
                return Stopped(reason="nobody was reading", partial=live.open_text())
            case None:
                seconds = int(turn.profile.budget.seconds)
                return Failed(
                    reason=f"I gave up after {seconds} s without an answer: the time limit of a"
                    " turn (agent.turn_timeout).",
                    code="deadline",
                    status=504,
                    temporary=True,
                )

    async def _close(
        self, claim: Claim, live: EventLog, checkpoint: "TurnCheckpoint", outcome: Outcome
    ) -> Claim | None:
        questions = outcome.questions if isinstance(outcome, Suspended) else ()
        # The ids are sorted, so that the first question has the smallest id. The questions are
        # shown in the order of their ids, and a text from the person answers the first open
        # question.
        ids, now = tuple(sorted(new_id() for _ in questions)), time.time()
        last: list[AgentEvent] = [
            QuestionAsked(
                id=id,
                call=question.call,
                kind=question.kind,
                prompt=question.prompt,
                choices=question.choices,
                detail=question.detail,
                reason=question.reason,
                expires_at=now + question.expires_in,
            )
            for id, question in zip(ids, questions, strict=True)
        ]
        last.append(finish_of(outcome))
        first, recorded = live.unkept(last) if claim.row.trigger == "api" else (0, [])
        closing = Closing(
            outcome=outcome,
            step=checkpoint.steps,
            first_seq=first,
            recorded=recorded,
            content=owed_content(
                (*claim.said, *checkpoint.said_texts), [*live.remarks(), *last], outcome
            )
            if claim.turn.reply_to
            else None,
            usage=live.usage(),
            prompt=checkpoint.prompt,
            question_ids=ids,
        )
        following = await persist(self._store, self._transactions.close, claim, closing, now)
        live.end(last)
        steps = checkpoint.steps + isinstance(outcome, Completed)
        log_finished(claim, outcome, steps, checkpoint.used + closing.usage)
        if claim.row.trigger == "api":
            live.release()
        if claim.turn.reply_to:
            self._outbox.wake(claim.turn.reply_to)
        return following


class TurnCheckpoint:
    """Commits the agent's steps. Raises ClaimLost if another process has claimed the turn."""

    def __init__(
        self,
        store: Store,
        claim: Claim,
        live: EventLog,
        steered: set[TurnId],
        folder: FolderId | None = None,
    ) -> None:
        """`steered` contains the turns for which new messages of people may have arrived. `folder`
        is the folder with the files that tools use in this process."""
        self._store = store
        self._claim = claim
        self._steered = steered
        self._folder = folder
        self._used_folder = claim.row.folder
        self._new_folder: FolderId | None = None
        """The folder that the turn has begun to use. It is None after the folder was stored with
        the turn."""
        self._live = live
        self.steps = claim.row.steps
        self.said_texts: list[str] = []
        self.used = NO_USAGE
        """Usage of the steps that this process has run."""
        self.prompt: Prompt | None = None
        """The prompt that this process has made for the turn and that is not stored yet; None if
        there is no such prompt."""
        self._spans = list(claim.spans)
        self._places: dict[CallId, tuple[int, int]] = {}
        self._find_places()

    async def said(self, message: AssistantMessage) -> None:
        first, recorded = self._live.unkept()
        seq, usage, folder = self._live.seq, self._live.usage(), self._new_folder

        def work() -> Work[int]:
            row, writer = self._claim.row, self._claim.writer
            yield from session_lock.lock(row.session)
            yield from turns.advance(row.id, row.epoch, self.steps + 1, seq, usage)
            number = yield from transcript.append(writer, self.steps, 0, message, time.time())
            if self.prompt and not row.transient:
                yield from sessions.keep_prompt(row.session, row.generation, self.prompt)
            if folder:
                yield from folders.use(row, folder)
            if row.trigger == "api":
                yield from turns.keep_events(row.id, first, recorded)
            return number

        number = await persist(self._store, work)
        self.used += usage
        self.prompt = self._new_folder = None
        self._spans.append((number, number))
        self._live.keep(seq)
        self._place(self.steps, message)
        self.steps += 1
        self.said_texts.append(message.text)

    async def started(self, call: CallId, handle: str | None = None) -> None:
        def work() -> Work[None]:
            row = self._claim.row
            yield from session_lock.lock(row.session)
            yield from turns.hold(row.id, row.epoch)
            yield from turns.start_call(call, row.id, handle, time.time())

        await persist(self._store, work)

    async def answered(self, message: ToolMessage) -> None:
        step, index = self._places[message.call]
        first, recorded = self._live.unkept()
        seq, usage, folder = self._live.seq, self._live.usage(), self._new_folder

        def work() -> Work[int]:
            row, writer = self._claim.row, self._claim.writer
            yield from session_lock.lock(row.session)
            yield from turns.advance(row.id, row.epoch, self.steps, seq, usage)
            number = yield from transcript.append(writer, step, index, message, time.time())
            if folder:
                yield from folders.use(row, folder)
            if row.trigger == "api":
                yield from turns.keep_events(row.id, first, recorded)
            return number

        number = await persist(self._store, work)
        if folder:
            # If this commit has stored no folder, `_new_folder` must not be cleared: another call
            # of the step may have set it during the commit.
            self._new_folder = None
        self.used += usage
        self._spans.append((number, number))
        self._live.keep(seq)

    async def steered(self) -> Sequence[UserMessage]:
        row = self._claim.row
        if row.id not in self._steered:
            # Steering is rare, so the store is read only for turns in `_steered`, and not before
            # each model call.
            return ()
        # The turn is removed from the set before the transaction. A message that arrives during the
        # transaction adds the turn again.
        self._steered.discard(row.id)
        found = await persist(self._store, enter_turn, self._claim, self.steps - 1, time.time())
        self._spans += [(number, number) for number, _ in found]
        return [message for _, message in found]

    def prompted(self, prompt: Prompt) -> None:
        self.prompt = prompt

    def uses_files(self) -> None:
        if self._folder != self._used_folder:
            self._new_folder = self._used_folder = self._folder

    async def compacted(self, first: int, last: int, summary: UserMessage) -> None:
        row = self._claim.row
        if row.transient:
            return
        # The results of a step may be stored in any order, so the first and last row are found with
        # min and max. No other rows lie between them, because a summary replaces whole steps.
        spans = self._spans[first:last]
        whole = (min(span[0] for span in spans), max(span[1] for span in spans))

        what = Condensed(session=row.session, generation=row.generation, span=whole)

        def work() -> Work[None]:
            yield from session_lock.lock(row.session)
            yield from turns.hold(row.id, row.epoch)
            yield from compactions.compact(what, summary, row.id, time.time())

        await persist(self._store, work)
        self._spans[first:last] = [whole]

    def _place(self, step: int, message: AssistantMessage) -> None:
        for index, call in enumerate(message.calls, 1):
            self._places[call.id] = (step, index)

    def _find_places(self) -> None:
        """Finds the places in the transcript for the results of the calls in the model's last
        message. A resumed turn still has to store these results."""
        for message in reversed(self._claim.turn.history):
            if isinstance(message, AssistantMessage):
                self._place(self.steps - 1, message)
                return


async def end_processes(agent: HostedAgent, session: SessionKey) -> None:
    """Ends the background processes of a stateless request and deletes its sandbox, because no
    later turn could use them."""
    profile = agent.profile
    scope = SandboxScope(
        agent=session.agent, session=session, workspace=profile.workspace, home=profile.home
    )
    try:
        with anyio.fail_after(PROCESSES_SECONDS):
            sandbox = await agent.backend.open(scope)
            # If a process has ended without an exit code, its supervisor was killed. Child
            # processes of the supervisor may still run, so they are ended, too.
            known = await sandbox.processes()
            left = [one.id for one in known if one.running or one.code is None]
            async with anyio.create_task_group() as group:
                for id in left:
                    group.start_soon(_kill, sandbox, id)
            await agent.backend.discard(scope)
    except Exception:
        # A backend may come from a plugin, and an error in the plugin must not keep the turn open.
        log.exception("background processes of %s may still be running", session)


async def _kill(sandbox: Sandbox, id: str) -> None:
    await (await sandbox.process(id)).kill()


def finish_of(outcome: Outcome) -> TurnFinished:
    match outcome:
        case Completed(message=message):
            return TurnFinished(outcome="completed", finish_reason=message.cut or "stop")
        case Suspended(calls=calls):
            why: FinishReason = "tool_calls" if calls else "stop"
            return TurnFinished(outcome="suspended", calls=calls, finish_reason=why)
        case Stopped(reason=reason):
            return TurnFinished(outcome="stopped", text=reason)
        case Failed(reason=reason, code=code, status=status, retry_after=pause):
            return TurnFinished(
                outcome="failed", text=reason, code=code, status=status, retry_after=pause
            )


def owed_content(
    said: Sequence[str], last: Sequence[AgentEvent], outcome: Outcome
) -> Content | None:
    """Returns the content for the chat at the end of a turn; None if there is nothing to send."""
    match outcome:
        case Completed(message=message):
            said = (*said, message.text)
        case Stopped(partial=partial):
            said = (*said, partial)
        case _:
            pass
    view = View(
        segments=tuple(text for text in said if text.strip()),
        questions=tuple(event for event in last if isinstance(event, QuestionAsked)),
        notices=tuple(event for event in last if isinstance(event, Notice)),
        outcome=finish_of(outcome),
    )
    return final_content(view)
