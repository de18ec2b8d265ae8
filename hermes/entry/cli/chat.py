"""`hermes chat`: the agent in this terminal, or one question and its answer."""

import io
import logging
import shlex
import sys
from collections.abc import Callable

import anyio
import click

from hermes import settings as configuration
from hermes.entry.cli.conversation import TerminalConversation
from hermes.entry.cli.folder import here
from hermes.entry.cli.logs import start_logging
from hermes.entry.cli.runtime import Runtime
from hermes.entry.cli.talk import SessionWish, Talk, session_of
from hermes.entry.output import say
from hermes.entry.terminal.plain import JsonScreen, PlainTerminal, words
from hermes.entry.terminal.protocols import AnswerScreen, ChatTerminal
from hermes.settings import Settings
from hermes.types.errors import HermesError

DUMB = ("", "dumb", "unknown")
"""Terminals that have no colors and can't move their cursor."""

log = logging.getLogger(__name__)


class NotText(HermesError):
    code = "not_text"
    status = 400


@click.command()
@click.option("-q", "--query", help="Ask this, print the answer, and leave.")
@click.option("-c", "--continue", "latest", is_flag=True, help="Go on with the last conversation.")
@click.option("-r", "--resume", metavar="NAME", help="Go on with this one, or one that begins so.")
@click.option("-s", "--session", metavar="NAME", help="Go on with this one, or begin it.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
@click.pass_obj
def chat(
    runtime: Runtime,
    query: str | None,
    latest: bool,
    resume: str | None,
    session: str | None,
    as_json: bool,
) -> None:
    """Talk to the agent in this terminal.

    With -q, or with text on standard input, the answer is printed and the command ends: with exit
    code 0 when the turn was completed, 130 when it was stopped, 1 otherwise. What is not the answer
    goes to standard error. With -q too standard input is read to its end, unless it is a terminal,
    and added to the question: in a loop that reads a list, give it </dev/null.

    File tools work in the current directory, unless the setting `workspace` says otherwise.
    """
    if [latest, resume is not None, session is not None].count(True) > 1:
        raise click.UsageError("one conversation at a time: --continue, --resume or --session")
    settings = here(configuration.load())
    start_logging("WARNING", runtime.secrets(settings))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    wish = SessionWish(name=session, resume=resume, latest=latest)
    color = can_draw() and not configuration.ENVIRON.get("NO_COLOR")
    text = question(query)
    if text is None:
        if as_json:
            raise click.UsageError("--json needs a question: give it with -q or on standard input")
        if sys.stdout.isatty() and runtime.models(settings).main() is None:
            from hermes.entry.cli.embedded import offer  # noqa: PLC0415  # rarely needed

            settings = offer(settings, runtime)
        anyio.run(Talk(runtime, settings, wish, terminal_of(runtime, settings, color=color)).run)
        return
    if not text.strip():
        raise click.UsageError("there is nothing to ask: the question is empty")
    asking = Asking(runtime, settings, wish)
    new_screen = JsonScreen if as_json else lambda session: words(color=color)
    sys.exit(anyio.run(asking.run, text, new_screen))


class Asking:
    """One question, and its answer."""

    def __init__(self, runtime: Runtime, settings: Settings, wish: SessionWish) -> None:
        self._runtime = runtime
        self._settings = settings
        self._wish = wish

    async def run(self, text: str, new_screen: Callable[[str], AnswerScreen]) -> int:
        """The exit code."""
        async with self._runtime.open_gateway(self._settings, terminal=True) as gateway:
            session = await session_of(gateway, self._wish)
            conversation = TerminalConversation(gateway, session, lambda: new_screen(session))
            async with conversation.interrupts.heard():
                ending = await conversation.say(text)
        if ending == "suspended":
            answer = f'hermes chat --session {shlex.quote(session)} -q "…"'
            say(f"The agent waits for your answer: {answer}", err=True)
        return {"completed": 0, "stopped": 130}.get(ending, 1)


def question(query: str | None) -> str | None:
    """What -q and a pipe ask together; None when a person sits at the terminal."""
    piped = None if sys.stdin.isatty() else _piped()
    if query is None:
        return piped
    return f"{query}\n\n{piped}" if piped and piped.strip() else query


def _piped() -> str:
    text = sys.stdin.read()
    try:
        text.encode()
    except UnicodeEncodeError:
        # Bytes that are not UTF-8 were decoded to lone surrogates.
        raise NotText("the input is not text: only UTF-8 can be asked") from None
    return text


def can_draw() -> bool:
    """Whether stdout is a terminal that knows more than lines."""
    return sys.stdout.isatty() and configuration.ENVIRON.get("TERM", "").lower() not in DUMB


def terminal_of(runtime: Runtime, settings: Settings, *, color: bool) -> ChatTerminal:
    """The best that this terminal can do."""
    if not can_draw():
        return PlainTerminal(color=color)
    try:
        from hermes.entry.terminal.interactive import (  # noqa: PLC0415  # a quarter of a second
            InteractiveTerminal,
        )
    except ImportError as error:
        log.warning("the terminal stays plain: %s", error)
        return PlainTerminal(color=color)
    commands = {one.name: one.help for one in runtime.commands()}
    history = settings.home.root / "history"
    terminal = InteractiveTerminal(history, {**commands, "exit": "leave"}, color=color)
    start_logging("WARNING", runtime.secrets(settings), terminal.log)
    return terminal
