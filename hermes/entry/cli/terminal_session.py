"""One session of a terminal with the gateway: sends messages and shows their turns on a screen."""

import getpass
import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Literal

import anyio

from hermes.control import sessions
from hermes.control.following import Following
from hermes.control.gateway import Gateway
from hermes.entry.cli.interrupts import Interrupts
from hermes.entry.terminal.protocols import AnswerScreen
from hermes.types.errors import HermesError
from hermes.types.events import Envelope, QuestionAsked, TurnFinished
from hermes.types.identity import OWNER, Principal, Source, TurnId, new_id
from hermes.types.messages import (
    Accepted,
    Body,
    Duplicate,
    MessageEvent,
    Origin,
    Pressed,
    Receipt,
    Refused,
    Said,
)

LEFT = "Another process runs this turn now; it continues in the gateway."
WALKED_AWAY = "Left before the turn ended."
EARLIER = "An earlier message of this session is answered first; /stop ends that turn."
EARLIER_SECONDS = 1.0
"""Seconds after which a person is told that their turn waits for an earlier one."""
PLATFORM = "cli"
TERMINAL_ORIGIN = Origin(
    # A person who can start the command owns the home.
    principal=Principal(name=PLATFORM, person=OWNER),
    place="You talk with a person in a terminal; Markdown is rendered.",
)

TurnEnding = Literal["completed", "suspended", "stopped", "failed", "left", "refused"]


class TerminalSession:
    """Sends a person's messages to one session, and shows the turns that answer them."""

    def __init__(
        self, gateway: Gateway, session: str, new_screen: Callable[[], AnswerScreen]
    ) -> None:
        self._gateway = gateway
        self._new_screen = new_screen
        self.interrupts = Interrupts()
        self._questions: list[QuestionAsked] = []
        """Questions of the agent that are not answered yet."""
        self._queued: list[QueuedQuestion] = []
        """Messages that were sent while a turn ran, and whose turns are not shown yet."""
        self._screen: AnswerScreen | None = None
        """The screen of the current turn."""
        self._source = Source(
            platform=PLATFORM,
            account="cli",
            chat_kind="private",
            chat_id=session,
            user_id=user_name(),
        )
        self.key = str(gateway.session_of(self._event(Said(text=""))))
        """The key of the session."""

    async def say(self, text: str) -> TurnEnding:
        """Sends a message and shows its turn or its reply; an interrupt stops the turn."""
        screen = self._new_screen()
        match await self._accepted(text):
            case Accepted(reply=str(reply)):
                screen.show_reply(reply)
                return "completed"
            case Accepted(turn=str(turn), after=after):
                with self._gateway.following(TurnId(turn), after) as following:
                    return await self._show(following, screen)
            case Refused(reason=reason):
                screen.remark(reason)
                return "refused"
            case Accepted() | Duplicate():
                raise AssertionError("a fresh message has a turn or a reply")

    async def forget_model(self) -> None:
        """Lets the agent's own model answer, and not one that was chosen in the session."""
        await self._gateway.accept(self._event(Said(text="/model default")))

    async def add(self, text: str) -> None:
        """Sends a message while a turn is shown: a command runs at once, the rest is queued."""
        screen = self._screen or self._new_screen()
        with anyio.CancelScope(shield=True):
            try:
                receipt = await self._accepted(text)
            except HermesError as error:
                screen.note(str(error))
                return
        match receipt:
            case Accepted(reply=str(reply)):
                screen.note(reply)
            case Accepted(turn=str(turn), after=after):
                self._queued.append(QueuedQuestion(self._gateway, TurnId(turn), after))
                screen.note(f"Queued ({len(self._queued)}): {text}")
            case Refused(reason=reason):
                screen.note(reason)
            case Accepted() | Duplicate():
                raise AssertionError("a fresh message has a turn or a reply")

    async def owes(self) -> bool:
        """Whether a queued message can be answered now, without an answer of the person first."""
        if not self._queued or self.interrupts.leaving:
            return False
        return not await self._gateway.read(sessions.waiting, self.key)

    async def follow(self) -> TurnEnding:
        """Shows the turn of the oldest queued message."""
        queued = self._queued.pop(0)
        with queued.kept:
            return await self._show(queued.following, self._new_screen())

    async def _accepted(self, text: str) -> Receipt:
        if not self._questions or text.startswith("/"):
            return await self._gateway.accept(self._event(Said(text=text)))
        question = self._questions[0]
        choice = chosen(question, text)
        if choice is None and out_of_range(question, text):
            count = len(question.choices)
            return Refused(reason=f"There are {count} choices: 1 to {count}, or your own words.")
        self._questions.pop(0)
        if choice:
            pressed = Pressed(question=question.id, choice=choice)
            receipt = await self._gateway.accept(self._event(pressed))
            if not isinstance(receipt, Refused):
                return receipt
        return await self._gateway.accept(self._event(Said(text=text)))

    async def _show(self, following: Following, screen: AnswerScreen) -> TurnEnding:
        self._screen = screen
        tell_at = anyio.current_time() + EARLIER_SECONDS
        wait, stopped = 0.0, False
        while True:
            events: Sequence[Envelope] = ()
            with self.interrupts.cancels() as interrupt:
                events = await following.next(wait)
            for envelope in events:
                screen.show(envelope.event)
                if isinstance(envelope.event, QuestionAsked):
                    self._questions.append(envelope.event)
            if following.ended:
                return _ending(events, screen)
            if interrupt.cancel_called:
                if stopped or self.interrupts.leaving:
                    screen.remark(WALKED_AWAY)
                    return "left"
                stopped = True
                await self._gateway.accept(self._event(Said(text="/stop")))
            if not following.begun and anyio.current_time() >= tell_at:
                screen.note(EARLIER)
                tell_at = math.inf
            wait = screen.draw() if following.begun else min(screen.draw(), EARLIER_SECONDS)

    def _event(self, body: Body) -> MessageEvent:
        return MessageEvent(
            dedupe_key=f"cli:{new_id()}",
            source=self._source,
            origin=TERMINAL_ORIGIN,
            received_at=time.time(),
            body=body,
        )


class QueuedQuestion:
    """A message whose turn is not shown yet; its events stay in memory until then."""

    def __init__(self, gateway: Gateway, turn: TurnId, after: int) -> None:
        self.kept = ExitStack()
        self.following = self.kept.enter_context(gateway.following(turn, after))


def _ending(events: Sequence[Envelope], screen: AnswerScreen) -> TurnEnding:
    """The outcome in the last event; `left` if another process took the turn over."""
    if events and isinstance(events[-1].event, TurnFinished):
        return events[-1].event.outcome
    screen.remark(LEFT)
    return "left"


def out_of_range(question: QuestionAsked, text: str) -> bool:
    """Whether the text is the number of a choice that does not exist."""
    words = any(character.isdigit() for choice in question.choices for character in choice)
    return bool(question.choices) and text.strip().isdecimal() and not words


def chosen(question: QuestionAsked, text: str) -> str | None:
    """The choice that the text selects, by its words or its number."""
    named = {choice.casefold(): choice for choice in reversed(question.choices)}
    numbered = {str(number): choice for number, choice in enumerate(question.choices, 1)}
    return named.get(text.casefold()) or numbered.get(text)


def user_name() -> str:
    """The name of the user that runs the command."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run us under a uid that has no name.
        return str(os.getuid())
