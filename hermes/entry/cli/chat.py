"""`hermes chat`: the agent in this terminal, or one question and its answer."""

import getpass
import io
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Literal

import anyio
import click

from hermes import __version__
from hermes import settings as configuration
from hermes.control.gateway import Gateway
from hermes.control.hub import finished
from hermes.entry.cli.logs import start_logging
from hermes.entry.cli.runtime import Runtime
from hermes.settings import Settings
from hermes.streaming.stdout import JsonLines, StdoutStream
from hermes.types.events import AgentEvent, Notice
from hermes.types.identity import Source, TurnId, new_id
from hermes.types.messages import Accepted, Duplicate, MessageEvent, Refused, Said

PROMPT = "› "
PASTE_SECONDS = 0.02
"""Lines that follow this closely were pasted: they are one message."""
LEFT = "The turn was left to another process: it goes on in the gateway."

Ending = Literal["completed", "suspended", "stopped", "failed", "left", "refused"]


class Interrupts:
    """Ctrl-C and SIGTERM, for whatever waits at the moment."""

    def __init__(self) -> None:
        self.leaving = False
        """The process was asked to end."""
        self._scope: anyio.CancelScope | None = None

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[None]:
        """Until the block ends a signal interrupts a wait instead of the process."""
        async with anyio.create_task_group() as group:
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                group.start_soon(self._listen, signals)
                yield
                group.cancel_scope.cancel()

    async def cut(self, waiting: Awaitable[None]) -> bool:
        """Waits; whether a signal cut it short."""
        with anyio.CancelScope() as self._scope:
            await waiting
        return self._scope.cancelled_caught

    async def _listen(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for number in signals:
            self.leaving = self.leaving or number == signal.SIGTERM
            if self._scope is not None:
                self._scope.cancel()


class Conversation:
    """One session of the terminal with the gateway."""

    def __init__(self, gateway: Gateway, session: str, new_screen: Callable[[], "Screen"]) -> None:
        self._gateway = gateway
        self._new_screen = new_screen
        self.interrupts = Interrupts()
        self._source = Source(
            platform="cli",
            account="cli",
            chat_kind="private",
            chat_id=session,
            user_id=user_name(),
        )

    async def say(self, text: str) -> Ending:
        """Hands the words in and shows what comes of them; an interrupt stops the turn."""
        screen = self._new_screen()
        receipt = await self._gateway.accept(self._event(text))
        match receipt:
            case Accepted(reply=str(reply)):
                screen.tell(reply)
                return "completed"
            case Accepted(turn=str(turn), after=after):
                return await self._follow(TurnId(turn), after, screen)
            case Refused(reason=reason):
                screen.tell(reason)
                return "refused"
            case Accepted() | Duplicate():
                raise AssertionError("a fresh message has a turn or a reply")

    async def read(self) -> str | None:
        """What the person types next; None when they leave."""
        typed: str | None = None

        async def type_() -> None:
            nonlocal typed
            typed = await read_lines(sys.stdin.fileno())

        cut = self.interrupts.leaving or await self.interrupts.cut(type_())
        return None if cut else typed

    async def _follow(self, turn: TurnId, after: int, screen: "Screen") -> Ending:
        with self._gateway.hub.following(turn) as log:
            seq, stopped = after, False
            while True:
                events = log.read(seq)
                for seq, event in events:  # noqa: B007  # where the next read begins
                    screen.show(event)
                if done := finished(events):
                    return done.outcome
                if log.finished:
                    screen.tell(LEFT)
                    return "left"
                if await self.interrupts.cut(log.changed()):
                    if stopped or self.interrupts.leaving:
                        return "left"
                    stopped = True
                    await self._gateway.accept(self._event("/stop"))

    def _event(self, text: str) -> MessageEvent:
        return MessageEvent(
            dedupe_key=f"cli:{new_id()}",
            source=self._source,
            received_at=time.time(),
            body=Said(text=text),
        )


class Screen:
    """Where one answer is written."""

    def __init__(self, *, as_json: bool, color: bool) -> None:
        self._as_json = as_json
        self._stream = JsonLines() if as_json else StdoutStream(color)

    def show(self, event: AgentEvent) -> None:
        if text := self._stream.feed(event):
            sys.stdout.write(text)
            sys.stdout.flush()

    def tell(self, text: str) -> None:
        """What the gateway says itself, outside any turn."""
        if self._as_json:
            self.show(Notice(text=text))
        else:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()


async def read_lines(descriptor: int) -> str | None:
    """A line of the terminal, with those pasted behind it; None at its end."""
    read = b""
    while True:
        await anyio.wait_readable(descriptor)
        if not (more := os.read(descriptor, 65536)):
            return read.decode(errors="replace") if read else None
        read += more
        if not read.endswith(b"\n"):
            continue
        with anyio.move_on_after(PASTE_SECONDS) as pause:
            await anyio.wait_readable(descriptor)
        if pause.cancelled_caught:
            return read.decode(errors="replace")


@click.command()
@click.option("-q", "--query", help="Ask this, print the answer, and leave.")
@click.option("-s", "--session", help="Continue the conversation of this name.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
@click.pass_obj
def chat(runtime: Runtime, query: str | None, session: str | None, as_json: bool) -> None:
    """Talk to the agent in this terminal.

    With -q, or with text on standard input, the answer is printed and the command ends: with exit
    code 0 when the turn was completed, 1 when it was not.
    """
    settings = configuration.load()
    start_logging("WARNING", settings.secrets())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    text = question(query)
    if text is None and as_json:
        raise click.UsageError("--json needs a question: give it with -q or on standard input")
    color = sys.stdout.isatty() and not configuration.ENVIRON.get("NO_COLOR")
    opened = Opened(runtime, settings, session or new_id(), as_json=as_json, color=color)
    if text is None:
        anyio.run(opened.talk)
        return
    if not text.strip():
        raise click.UsageError("there is nothing to ask: the question is empty")
    sys.exit(anyio.run(opened.ask, text))


class Opened:
    """What `hermes chat` was started with."""

    def __init__(
        self, runtime: Runtime, settings: Settings, session: str, *, as_json: bool, color: bool
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._session = session
        self._as_json = as_json
        self._color = color

    async def ask(self, text: str) -> int:
        """One question; the exit code."""
        async with self._conversation() as conversation:
            ending = await conversation.say(text)
        if ending == "suspended":
            answer = f'hermes chat --session {self._session} -q "…"'
            click.echo(f"The agent waits for your answer: {answer}", err=True)
        return {"completed": 0, "stopped": 130}.get(ending, 1)

    async def talk(self) -> None:
        """Question and answer, until the person leaves."""
        click.echo(f"Hermes {__version__}. /help lists the commands; Ctrl-D leaves.")
        async with self._conversation() as conversation:
            while True:
                click.echo(PROMPT, nl=False)
                text = await conversation.read()
                if text is None:
                    click.echo()
                    break
                if text.strip():
                    await conversation.say(text.strip())
        click.echo(f"To continue: hermes chat --session {self._session}")

    @asynccontextmanager
    async def _conversation(self) -> AsyncIterator[Conversation]:
        def screen() -> Screen:
            return Screen(as_json=self._as_json, color=self._color)

        async with self._runtime.open_gateway(self._settings, terminal=True) as gateway:
            conversation = Conversation(gateway, self._session, screen)
            async with conversation.interrupts.heard():
                yield conversation


def question(query: str | None) -> str | None:
    """What -q and a pipe ask together; None when a person sits at the terminal."""
    piped = None if sys.stdin.isatty() else sys.stdin.read()
    if query is None:
        return piped
    return f"{query}\n\n{piped}" if piped and piped.strip() else query


def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run us under a uid that has no name.
        return str(os.getuid())
