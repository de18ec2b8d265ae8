"""The `hermes chat` command: starts an interactive chat, or sends one question."""

import io
import logging
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import click

from hermes import settings as configuration
from hermes.control.sessions import OpenQuestion
from hermes.entry.cli.folder import here
from hermes.entry.cli.interactive_chat import InteractiveChat, SessionSelection, session_of
from hermes.entry.cli.logs import start_logging
from hermes.entry.cli.model_option import with_model
from hermes.entry.cli.runtime import Runtime
from hermes.entry.cli.terminal_session import TerminalSession, TurnEnding
from hermes.entry.output import say
from hermes.entry.terminal.plain import JsonScreen, PlainTerminal, plain_screen
from hermes.entry.terminal.protocols import AnswerScreen, ChatTerminal
from hermes.settings import Settings
from hermes.types.approvals import short_id
from hermes.types.errors import HermesError

DUMB = ("", "dumb", "unknown")
"""Values of TERM for terminals without colors and cursor movement."""

EXIT_CODES: dict[TurnEnding, int] = {"completed": 0, "suspended": 3, "stopped": 130}
"""The exit codes for some endings of a turn. The exit code for every other ending is 1."""

log = logging.getLogger(__name__)


class NotText(HermesError):
    """Raised if standard input is not UTF-8."""

    code = "not_text"
    status = 400


@click.command()
@click.option("-q", "--query", help="Send this question, print the answer, and exit.")
@click.option("-c", "--continue", "latest", is_flag=True, help="Continue the last conversation.")
@click.option(
    "-r",
    "--resume",
    metavar="NAME",
    help="Continue the conversation with this number, id, name or title.",
)
@click.option(
    "-s", "--session", metavar="NAME", help="Continue the session with this name, or start it."
)
@click.option("-m", "--model", metavar="ID", help="Use this model for this chat.")
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
@click.pass_obj
def chat(
    runtime: Runtime,
    query: str | None,
    latest: bool,
    resume: str | None,
    session: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Talk to the agent in this terminal.

    With -q, or with text on standard input, the answer is printed and the command ends. The exit
    code is 0 if the turn was completed, 3 if it waits for an approval or an answer, 130 if it was
    stopped, 2 if the command line is wrong, 78 if a setting can't be used, and 1 otherwise.
    Everything except the answer is printed to standard error. With -q, standard input is read to
    its end and added to the question, unless it is a terminal. In a shell loop that reads a list
    from standard input, add </dev/null to the command, or it reads the rest of the list.

    File tools work in the current directory, unless the setting `workspace` names another folder.
    """
    if [latest, resume is not None, session is not None].count(True) > 1:
        raise click.UsageError("use only one of --continue, --resume and --session")
    settings = configuration.load()
    if model is not None:
        settings = with_model(settings, runtime, model, configuration.ENVIRON)
    settings = here(settings)
    start_logging("WARNING", runtime.secrets(settings))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    selection = SessionSelection(
        name=session, resume=resume, latest=latest, own_model=model is not None
    )
    color = can_draw() and not configuration.ENVIRON.get("NO_COLOR")
    piped = None if sys.stdin.isatty() else _piped()
    if query is None and piped is None:
        if as_json:
            raise click.UsageError("--json needs a question: give it with -q or on standard input")
        if sys.stdout.isatty() and runtime.models(settings).main() is None:
            from hermes.entry.cli.embedded import offer  # noqa: PLC0415  # rarely needed

            settings = offer(settings, runtime)
        anyio.run(
            InteractiveChat(
                runtime, settings, selection, terminal_of(runtime, settings, color=color)
            ).run
        )
        return
    if not f"{query or ''}{piped or ''}".strip():
        raise click.UsageError("there is nothing to ask: the question is empty")
    asking = SingleQuestion(runtime, settings, selection)
    new_screen = JsonScreen if as_json else lambda name: plain_screen(color=color, answers=False)
    sys.exit(anyio.run(asking.run, query or "", piped or "", new_screen))


class SingleQuestion:
    """Sends one question and shows the answer."""

    def __init__(self, runtime: Runtime, settings: Settings, selection: SessionSelection) -> None:
        self._runtime = runtime
        self._settings = settings
        self._selection = selection

    async def run(self, text: str, piped: str, new_screen: Callable[[str], AnswerScreen]) -> int:
        """Sends `text`, followed by `piped`, and shows the answer. Returns the exit code of the
        command."""
        async with self._runtime.open_gateway(self._settings, terminal=True) as gateway:
            name = await session_of(gateway, self._selection)
            session = TerminalSession(
                gateway, name, lambda: new_screen(name), Path(), answers=False
            )
            if self._selection.own_model:
                await session.forget_model()
            async with session.interrupts.handled():
                ending = await session.say(text, piped)
            if ending == "suspended":
                say(how_to_answer(name, await session.open_questions()), err=True)
        return EXIT_CODES.get(ending, 1)


def how_to_answer(session: str, waiting: Sequence[OpenQuestion]) -> str:
    """Returns the commands that answer the open questions of the session."""
    chat = f"hermes chat --session {shlex.quote(session)} -q"
    lines: list[str] = []
    for one in waiting:
        if one.kind != "approval":
            lines.append(f'The agent waits for your answer: {chat} "…"')
            continue
        id = short_id(one.id)
        lines += [
            f"The turn waits for your approval {id}: {one.brief}",
            f"  to decide:  hermes approvals approve {id}  or  hermes approvals deny {id}",
            f"  to decide and see the rest:  {chat} '/approve {id}'  or  {chat} '/deny {id}'",
        ]
    return "\n".join(lines)


def _piped() -> str:
    """Returns the text on standard input, up to its end."""
    text = sys.stdin.read()
    try:
        text.encode()
    except UnicodeEncodeError:
        # Bytes that are not UTF-8 were decoded to lone surrogates.
        raise NotText("standard input is not text: only UTF-8 can be sent") from None
    return text


def can_draw() -> bool:
    """Returns whether stdout is a terminal that can move its cursor."""
    return sys.stdout.isatty() and configuration.ENVIRON.get("TERM", "").lower() not in DUMB


def terminal_of(runtime: Runtime, settings: Settings, *, color: bool) -> ChatTerminal:
    """Returns the interactive terminal, or the plain terminal if the interactive one can't be
    used."""
    if not can_draw():
        return PlainTerminal(color=color)
    try:
        from hermes.entry.terminal.interactive import (  # noqa: PLC0415  # a quarter of a second
            InteractiveTerminal,
        )
    except ImportError as error:
        log.warning("using plain terminal output: %s", error)
        return PlainTerminal(color=color)
    commands = [one for one in runtime.commands() if "terminal" in one.surfaces]
    terminal = InteractiveTerminal(
        settings.home.root / "history",
        {one.name: one.help for one in commands},
        {one.name: one.aliases for one in commands},
        color=color,
    )
    start_logging("WARNING", runtime.secrets(settings), terminal.log)
    return terminal
