"""One session of a terminal with the gateway: sends messages and shows their turns on a screen."""

import getpass
import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import anyio
import anyio.to_thread
from msgspec.structs import replace

from hermes.control import sessions
from hermes.control.context_use import ContextUse
from hermes.control.following import Following
from hermes.control.gateway import Gateway
from hermes.control.sessions import OpenQuestion
from hermes.entry.cli.file_mentions import read_mentions
from hermes.entry.cli.interrupts import Interrupts
from hermes.entry.cli.open_questions import OpenQuestions
from hermes.entry.terminal.protocols import AnswerScreen
from hermes.types.errors import HermesError
from hermes.types.events import (
    AgentEvent,
    ContextCompacted,
    Envelope,
    QuestionAsked,
    ToolFinished,
    TurnFinished,
)
from hermes.types.identity import OWNER, Principal, Source, TurnId, new_id
from hermes.types.messages import (
    Accepted,
    Body,
    Duplicate,
    MessageEvent,
    Origin,
    Receipt,
    Refused,
    Said,
)

LEFT = "Another process runs this turn now; it continues in the gateway."
WALKED_AWAY = "Left before the turn ended."
EARLIER = "An earlier message of this session is answered first; /stop ends that turn."
UNDECIDED = "Your message is answered after the open question is decided."
DECIDED_ELSEWHERE = "The question was decided elsewhere, or has expired."
EARLIER_SECONDS = 1.0
"""Seconds after which a notice says that the turn waits for an earlier turn."""
PLATFORM = "cli"
TERMINAL_ORIGIN = Origin(
    # Anybody who can start the command counts as the owner of the home.
    principal=Principal(name=PLATFORM, person=OWNER),
    place="You talk with a person in a terminal; Markdown is rendered.",
    terminal=True,
)

GROWS_CONTEXT = (ToolFinished, ContextCompacted, TurnFinished)
"""Events that may change the share of the context window in use."""

TurnEnding = Literal["completed", "suspended", "stopped", "failed", "left", "refused"]


class SentMessage:
    """A message whose turn is not shown yet. The events of the turn stay in memory until it is
    shown."""

    def __init__(self, gateway: Gateway, text: str, turn: TurnId, after: int) -> None:
        self.text = text
        self.turn = turn
        self.kept = ExitStack()
        self.following = self.kept.enter_context(gateway.following(turn, after))


class TerminalSession:
    """Sends a person's messages to one session, and shows the turns that answer them."""

    def __init__(
        self,
        gateway: Gateway,
        session: str,
        new_screen: Callable[[], AnswerScreen],
        folder: Path,
        show_context: Callable[[ContextUse], None] = lambda use: None,
        *,
        answers: bool = True,
    ) -> None:
        """`answers` says whether the person can answer questions here. If the person can, questions
        are asked one at a time."""
        self._gateway = gateway
        self._new_screen = new_screen
        self._folder = folder
        """The folder that the paths of mentioned files are relative to."""
        self._show_context = show_context
        self._stopping = False
        """Whether the person has already requested that the current turn stop."""
        self.interrupts = Interrupts()
        self._answers = answers
        self._continued: tuple[Following, ExitStack] | None = None
        """A turn that has continued without input from this terminal, and that is not shown yet."""
        self._questions = OpenQuestions()
        self._queued: list[SentMessage] = []
        """Messages that were sent while the agent worked, and whose own turns are not shown yet."""
        self._screen: AnswerScreen | None = None
        """The screen of the current turn."""
        self.switch(session)

    def switch(self, session: str) -> None:
        """Continues with the session that has this name. The turns of the previous session
        continue, but they are not shown any more."""
        self.name = session
        """The name of the session."""
        self._source = Source(
            platform=PLATFORM,
            account="cli",
            chat_kind="private",
            chat_id=session,
            user_id=user_name(),
        )
        self._session_key = self._gateway.session_of(self._event(Said(text="")))
        self.key = str(self._session_key)
        """The key of the session."""
        self._questions.clear()
        while self._queued:
            self._queued.pop().kept.close()

    async def say(self, text: str, piped: str = "") -> TurnEnding:
        """Sends a message and shows its turn or its reply. An interrupt stops the turn.

        `piped` is added to the text. Files that `piped` mentions are not attached, because another
        person may have written `piped`.
        """
        screen = self._new_screen()
        match await self._accepted(text, piped, screen):
            case Accepted(reply=str(reply), failed=failed):
                screen.show_reply(reply)
                await self.ask_again(screen)
                return "refused" if failed else "completed"
            case Accepted(turn=str(turn), after=after):
                sent = SentMessage(self._gateway, text, TurnId(turn), after)
                return await self._show_or_queue(sent, screen)
            case Refused(reason=reason):
                screen.remark(reason)
                await self.ask_again(screen)
                return "refused"
            case Accepted() | Duplicate():
                raise AssertionError("a fresh message has a turn or a reply")

    @property
    def asked(self) -> bool:
        """Whether a question waits for the person."""
        return bool(self._questions)

    async def ask_again(self, screen: AnswerScreen | None = None) -> None:
        """Shows the first question that is open in the store, unless it is the question that was
        shown last."""
        if not self._answers:
            return
        self._questions.replace(await self.open_questions())
        self._show_next(screen or self._new_screen())

    @property
    def continued(self) -> bool:
        """Whether the turn that waited for the person has continued although the person has typed
        nothing here."""
        return self._continued is not None

    async def await_decision(self) -> None:
        """Returns when the turn that waits for the person continues, because its question was
        decided elsewhere or has expired."""
        turn = await self._gateway.read(sessions.open_turn, self.key)
        if turn is None:
            return
        with ExitStack() as kept:
            following = kept.enter_context(self._gateway.following(turn))
            await following.begins()
            self._continued = following, kept.pop_all()

    async def open_questions(self) -> Sequence[OpenQuestion]:
        """Returns the questions of the session that wait for the person."""
        return await self._gateway.read(sessions.waiting, self.key)

    async def catch_up(self) -> TurnEnding | None:
        """Shows the turn that this process has resumed, for example because the approval for which
        the turn waited was decided elsewhere. Returns None if there is no such turn."""
        if self._continued is not None:
            following, kept = self._continued
            self._continued = None
            screen = self._new_screen()
            screen.remark(DECIDED_ELSEWHERE)
            with kept:
                return await self._show(following, screen)
        turn = await self._gateway.read(sessions.open_turn, self.key)
        if turn is None:
            return None
        with self._gateway.following(turn) as following:
            if not following.expected:
                return None
            return await self._show(following, self._new_screen())

    async def forget_model(self) -> None:
        """Removes the model that was chosen in the session, so that the agent's own model is
        used."""
        await self._gateway.accept(self._event(Said(text="/model default")))

    async def add(self, text: str) -> bool:
        """Sends a message while a turn is shown. A command runs at once; other messages are
        queued.

        Returns whether the message was accepted.
        """
        screen = self._screen or self._new_screen()
        with anyio.CancelScope(shield=True):
            try:
                receipt = await self._accepted(text, "", screen)
            except HermesError as error:
                screen.note(str(error))
                return False
        match receipt:
            case Accepted(reply=str(reply), failed=failed):
                screen.note(reply)
                return not failed
            case Accepted(turn=str(turn), after=after):
                self._queued.append(SentMessage(self._gateway, text, TurnId(turn), after))
                screen.note(f"Queued ({len(self._queued)}): {text}")
                return True
            case Refused(reason=reason):
                screen.note(reason)
                return False
            case Accepted() | Duplicate():
                raise AssertionError("a fresh message has a turn or a reply")

    def note(self, text: str) -> None:
        """Shows a notice above the current turn."""
        (self._screen or self._new_screen()).note(text)

    async def owes(self) -> bool:
        """Returns whether there is a queued message that can be answered now. A queued message is
        not answered while a question waits for the person."""
        if not self._queued or self.interrupts.leaving:
            return False
        return not await self._gateway.read(sessions.waiting, self.key)

    async def follow(self) -> TurnEnding:
        """Shows the turn of the oldest queued message."""
        queued, screen = self._queued.pop(0), self._new_screen()
        screen.show_question(queued.text)
        with queued.kept:
            return await self._show(queued.following, screen)

    async def stop(self) -> None:
        """Stops the current turn, unless it is stopping already."""
        if not self._stopping:
            self._stopping = True
            await self._gateway.accept(self._event(Said(text="/stop")))

    async def measure(self) -> None:
        """Updates the status line of the terminal."""
        self._show_context(await self._gateway.context_use(self._session_key))

    async def _accepted(self, text: str, piped: str, screen: AnswerScreen) -> Receipt:
        answer = self._questions.answer(text)
        if isinstance(answer, Refused):
            return answer
        if answer is not None:
            return await self._gateway.accept(self._event(answer))
        return await self._gateway.accept(await self._said(text, piped, screen))

    async def _show_or_queue(self, sent: SentMessage, screen: AnswerScreen) -> TurnEnding:
        """Shows the turn of a message. If the turn can't begin because an earlier turn waits for
        the person, queues the message instead."""
        # The turn may end during this read. `sent.following` buffers its events, so no event is
        # lost.
        blocked = await self._gateway.read(sessions.blocked, self.key, sent.turn)
        if blocked and self._answers:
            self._queued.append(sent)
        else:
            with sent.kept:
                if not blocked:
                    return await self._show(sent.following, screen)
        screen.remark(UNDECIDED)
        return "suspended"

    async def _said(self, text: str, piped: str, screen: AnswerScreen) -> MessageEvent:
        """Returns the message with the files that its text mentions. If the text is a command, no
        file is attached."""
        if text.startswith("/"):
            return self._event(Said(text=_joined(text, piped)))
        read = await anyio.to_thread.run_sync(read_mentions, text, self._folder)
        written = _joined(read.text, piped)
        attachments = [replace(one.attachment, at=len(written)) for one in read.media]
        event = self._event(Said(text=written, attachments=tuple(attachments)))
        if attachments:
            await self._gateway.check_attachments(event)
            paths = [
                await self._gateway.media.keep(one.data, stateless=False) for one in read.media
            ]
            stored = zip(attachments, paths, strict=True)
            kept = tuple(replace(one, path=path) for one, path in stored)
            event = replace(event, body=Said(text=written, attachments=kept))
        if read.names:
            screen.note(f"Attached: {', '.join(read.names)}")
        return event

    async def _show(self, following: Following, screen: AnswerScreen) -> TurnEnding:
        self._screen = screen
        self._questions.clear()
        tell_at = anyio.current_time() + EARLIER_SECONDS
        wait, self._stopping = 0.0, False
        while True:
            events: Sequence[Envelope] = ()
            with self.interrupts.cancels() as interrupt:
                events = await following.next(wait)
            for envelope in events:
                self._show_event(envelope.event, screen)
            if any(isinstance(envelope.event, GROWS_CONTEXT) for envelope in events):
                await self.measure()
            if following.ended:
                return _ending(events, screen)
            if interrupt.cancel_called:
                if self._stopping or self.interrupts.leaving:
                    screen.remark(WALKED_AWAY)
                    return "left"
                await self.stop()
            if not following.begun and anyio.current_time() >= tell_at:
                screen.note(EARLIER)
                tell_at = math.inf
            wait = screen.draw() if following.begun else min(screen.draw(), EARLIER_SECONDS)

    def _show_event(self, event: AgentEvent, screen: AnswerScreen) -> None:
        if self._answers and isinstance(event, QuestionAsked):
            self._questions.add(event)
            return
        if isinstance(event, TurnFinished):
            self._show_next(screen)
        screen.show(event)

    def _show_next(self, screen: AnswerScreen) -> None:
        question = self._questions.next()
        if question is not None:
            screen.show(question)
            screen.draw()

    def _event(self, body: Body) -> MessageEvent:
        return MessageEvent(
            dedupe_key=f"cli:{new_id()}",
            source=self._source,
            origin=TERMINAL_ORIGIN,
            received_at=time.time(),
            body=body,
        )


def _joined(text: str, piped: str) -> str:
    return "\n\n".join(part for part in (text, piped) if part.strip())


def _ending(events: Sequence[Envelope], screen: AnswerScreen) -> TurnEnding:
    """Returns how the turn has ended, as its last event says; `left` if another process has taken
    the turn over."""
    if events and isinstance(events[-1].event, TurnFinished):
        return events[-1].event.outcome
    screen.remark(LEFT)
    return "left"


def user_name() -> str:
    """Returns the name of the user that runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # The user id of this process may have no name, as in some containers.
        return str(os.getuid())
