"""An interactive chat: opens a session, then reads and answers messages until the person leaves."""

import shlex
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio

from hermes import __version__
from hermes.control import sessions
from hermes.control.gateway import Gateway
from hermes.control.session_commands import MOST_SEARCHED, ambiguous, continued, listed, meant
from hermes.control.sessions import Summary, short_id
from hermes.entry.cli.local_commands import LEAVE
from hermes.entry.cli.runtime import Runtime
from hermes.entry.cli.terminal_session import PLATFORM, TerminalSession, TurnEnding
from hermes.entry.terminal.protocols import ChatTerminal
from hermes.settings import Settings
from hermes.text.commands import parse_command, resolve
from hermes.types.errors import HermesError
from hermes.types.identity import new_id
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.profile import ModelChoice
from hermes.types.store import Work
from hermes.types.value import Value

HINT = "/help lists the commands; @ attaches a file; Esc stops an answer, Ctrl-D leaves."
HOST = "commands run on this machine with your rights"
KEYS = """\
Enter sends, Alt-Enter or a \\ before Enter begins a new line, Tab completes, Up brings back a line.
@notes.txt attaches a file; @"my notes.txt" if its name has a space.
While the agent works, a command runs at once and other lines are queued; Esc or Ctrl-C stops it.
An approval is decided by its number, its first letter, yes or no; Esc cancels the turn.
Ctrl-D leaves."""


STOP_COMMAND = "/stop"
STILL_OPEN = (
    "The open question waits: it is asked again when you continue. `hermes approvals` lists what"
    " waits for an approval."
)


class SessionSelection(Value):
    """The session that the options of the command select. If all fields are empty, a new session is
    selected."""

    name: str | None = None
    """Name of a session, which is created if it does not exist."""
    resume: str | None = None
    """Number, id or title of a conversation in the list of sessions, or the name of its session."""
    latest: bool = False
    """Whether to use the most recently used session."""
    own_model: bool = False
    """Whether the command line names a model. The named model replaces the model that a person has
    chosen with /model."""


class LastExchange(Value):
    """The last question of a session and its answer."""

    asked: str
    answer: str


async def session_of(gateway: Gateway, selection: SessionSelection) -> str:
    """Returns the name of the selected session."""
    if selection.resume is not None:
        return (await resume(gateway, await _found(gateway, selection.resume))).chat
    if selection.latest:
        last = await gateway.read(sessions.latest, PLATFORM)
        return last.chat if last else new_id()
    return selection.name or new_id()


async def _found(gateway: Gateway, wanted: str) -> Summary:
    """Returns the conversation with this number, id or name. If no conversation has it, searches
    the titles, as /resume does."""
    try:
        return await gateway.read(sessions.find, wanted)
    except sessions.NoSuchSession:
        found = await _meant(gateway, wanted)
        if not found:
            raise
    if len(found) > 1:
        raise sessions.NoSuchSession(ambiguous(found, wanted, time.time(), "--resume"))
    return found[0]


async def _meant(gateway: Gateway, wanted: str) -> list[Summary]:
    return meant(await gateway.read(sessions.listed, PLATFORM, MOST_SEARCHED), wanted)


async def resume(gateway: Gateway, found: Summary) -> Summary:
    """Makes the conversation the current conversation of its session. Returns the conversation."""
    if found.platform != PLATFORM:
        raise sessions.NoSuchSession(
            f"{found.chat!r} is a session of {found.platform}: continue it there"
        )
    # The numbers in the list of sessions change with every message, so the conversation is named by
    # its key and its generation.
    await gateway.reopen(f"{found.key}.{found.generation + 1}")
    return found


class InteractiveChat:
    """Reads messages and shows their answers, until the person leaves."""

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        selection: SessionSelection,
        terminal: ChatTerminal,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._selection = selection
        self._terminal = terminal
        self._commands = {one.name: one.aliases for one in runtime.commands()}
        """The aliases of each command, by its name."""
        self._leaving = False
        """Whether the person typed /exit while the agent worked."""

    async def run(self) -> None:
        terminal = self._terminal
        settings, choice = self._settings, self._runtime.models(self._settings).main()
        terminal.greet(title_of(settings, choice), notes_of(settings, choice))
        async with self._runtime.open_gateway(self._settings, terminal=True) as gateway:
            name = await session_of(gateway, self._selection)
            session = TerminalSession(
                gateway, name, terminal.new_screen, Path(), terminal.show_context
            )
            with terminal.working():
                spoken = await self._show_earlier(gateway, session)
                if spoken and self._selection.own_model:
                    await session.forget_model()
                elif not spoken and self._selection.latest:
                    terminal.remark("There is no earlier conversation: this is a new one.")
                async with session.interrupts.handled():
                    while (text := await self._read(gateway, session)) is not None:
                        if not await self._switch(gateway, session, text):
                            await self._say(gateway, session, text)
                        spoken = True
            if session.asked:
                terminal.remark(STILL_OPEN)
        if spoken:
            resumed = shlex.quote(short_id(session.name, None))
            terminal.remark(f"To continue: hermes chat --resume {resumed}")

    async def _show_earlier(self, gateway: Gateway, session: TerminalSession) -> bool:
        """Shows the last exchange of the session, and what has happened since. Returns False if the
        session is new."""
        earlier = await gateway.read(last_exchange, session.key)
        if earlier is None:
            return False
        self._terminal.show_exchange(earlier.asked, earlier.answer)
        await self._continue(gateway, session)
        return True

    async def _continue(self, gateway: Gateway, session: TerminalSession) -> None:
        """Asks the open question again. If no question is open but a turn is already running, shows
        this turn without waiting for a message."""
        await session.ask_again()
        if not session.asked:
            await self._listen(gateway, session, session.catch_up)

    async def _switch(self, gateway: Gateway, session: TerminalSession, text: str) -> bool:
        """Carries out /sessions and /resume, which work with the sessions of all terminals. Returns
        False if the text is neither of these commands."""
        resumes = self._names(text, "resume")
        if not resumes and not self._names(text, "sessions"):
            return False
        wanted = argument_of(text)
        if not resumes or not wanted:
            self._terminal.remark(await conversation_list(gateway, wanted))
            return True
        found = await _meant(gateway, wanted)
        if len(found) > 1:
            self._terminal.remark(ambiguous(found, wanted, time.time()))
            return True
        try:
            one = found[0] if found else await gateway.read(sessions.find, wanted)
            session.switch((await resume(gateway, one)).chat)
        except HermesError as error:
            self._terminal.remark(str(error))
            self._skip_suggestion(text)
        else:
            self._terminal.remark(continued(one))
            await self._show_earlier(gateway, session)
        return True

    async def _read(self, gateway: Gateway, session: TerminalSession) -> str | None:
        interrupts = session.interrupts
        while not (interrupts.leaving or self._leaving):
            await session.measure()
            with interrupts.calls(self._terminal.leave):
                text = await self._read_line(session)
            if session.continued:
                await self._listen(gateway, session, session.catch_up)
                await self._answer_queued(gateway, session)
                if text is None:
                    continue
            if text is None or self._names(text, LEAVE):
                break
            if text.strip():
                return text.strip("\n")
        return None

    async def _read_line(self, session: TerminalSession) -> str | None:
        """Reads a line. If a turn waits for the person's decision and somebody decides elsewhere,
        stops waiting for the line, because the turn continues."""
        if not session.asked:
            return await self._terminal.read()

        async def leave() -> None:
            await session.await_decision()
            if session.continued:
                self._terminal.leave()

        async with anyio.create_task_group() as group:
            group.start_soon(leave)
            text = await self._terminal.read(STOP_COMMAND)
            group.cancel_scope.cancel()
        return text

    async def _say(self, gateway: Gateway, session: TerminalSession, text: str) -> None:
        if await self._listen(gateway, session, partial(session.say, text)) == "refused":
            self._skip_suggestion(text)
        await self._answer_queued(gateway, session)
        if text.strip().casefold() == "/help":
            self._terminal.remark(KEYS)

    async def _answer_queued(self, gateway: Gateway, session: TerminalSession) -> None:
        while not self._leaving and await session.owes():
            await self._listen(gateway, session, session.follow)

    async def _listen(
        self,
        gateway: Gateway,
        session: TerminalSession,
        answer: Callable[[], Awaitable[TurnEnding | None]],
    ) -> TurnEnding | None:
        """Shows an answer, and sends the lines that the person types while it is shown."""

        async def send(text: str) -> None:
            if self._names(text, LEAVE):
                self._leaving = True
            elif self._names(text, "sessions"):
                session.note(await conversation_list(gateway, argument_of(text)))
            elif not await session.add(text):
                self._skip_suggestion(text)

        async with anyio.create_task_group() as group:
            group.start_soon(self._terminal.read_ahead, send, session.stop)
            ending: TurnEnding | None
            try:
                ending = await answer()
            except HermesError as error:
                self._terminal.remark(str(error))
                ending = "refused"
            group.cancel_scope.cancel()
        return ending

    def _names(self, text: str, command: str) -> bool:
        """Returns whether the text calls this slash command, with its full name or an
        abbreviation."""
        parsed = parse_command(text)
        return parsed is not None and resolve(parsed.name, self._commands) == command

    def _skip_suggestion(self, text: str) -> None:
        """Stops suggesting a command that failed."""
        if text.startswith("/"):
            self._terminal.skip_suggestion(text)


def argument_of(text: str) -> str:
    """Returns the text after the name of a slash command; empty if no text follows."""
    parsed = parse_command(text)
    return parsed.argument.strip() if parsed else ""


async def conversation_list(gateway: Gateway, words: str) -> str:
    """Returns a list of the conversations whose title contains the words. The conversations of all
    terminals are searched."""
    known = await gateway.read(sessions.listed, PLATFORM, MOST_SEARCHED)
    return listed(known, words, time.time())


def title_of(settings: Settings, choice: ModelChoice | None) -> str:
    """Returns the first line of the chat: the version, the model and the workspace."""
    model = f"{choice.model} ({choice.provider})" if choice else "no model"
    return f"Hermes {__version__} · {model} · {short(settings.workspace)}"


def notes_of(settings: Settings, choice: ModelChoice | None) -> list[str]:
    """Returns the lines below the title: how to get help, and the agent's permissions."""
    notes = [HINT]
    if choice is not None and not choice.tools:
        notes.append(f"{choice.model} can't use tools")
    if settings.workspace in (home_directory(), Path(settings.workspace.anchor)):
        notes.append(f"the agent can read and write the files in {short(settings.workspace)}")
    if settings.terminal.backend == "local":
        notes.append(HOST)
    return notes


def short(path: Path) -> str:
    """Returns the path, with `~` for the home directory."""
    own = home_directory()
    return str("~" / path.relative_to(own)) if own and path.is_relative_to(own) else str(path)


def home_directory() -> Path | None:
    """Returns the home directory of the user; None if the user has no home directory."""
    try:
        return Path.home()
    except RuntimeError:
        # In some containers, the user id of this process has no home directory.
        return None


def last_exchange(key: str) -> Work[LastExchange | None]:
    """Returns the last question of the session and its answer; None for a new session."""
    try:
        said = yield from sessions.entries(key)
    except sessions.NoSuchSession:
        return None
    if not said:
        return None
    asked, answers = "", list[str]()
    for entry in said:
        match entry.message:
            case UserMessage(text=text):
                asked, answers = text, []
            case AssistantMessage(text=text) if text.strip():
                answers.append(text)
    return LastExchange(asked=asked, answer="\n\n".join(answers))
