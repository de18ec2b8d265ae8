"""A conversation at a terminal: which one it is, and question after question until the end."""

import shlex
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio

from hermes import __version__
from hermes.control import sessions
from hermes.control.gateway import Gateway
from hermes.entry.cli.conversation import PLATFORM, TerminalConversation, TurnEnding
from hermes.entry.cli.runtime import Runtime
from hermes.entry.terminal.protocols import ChatTerminal
from hermes.settings import Settings
from hermes.types.commands import SlashCommand
from hermes.types.errors import HermesError
from hermes.types.identity import new_id
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.profile import ModelChoice
from hermes.types.store import Work
from hermes.types.value import Value

HINT = "/help lists the commands; Ctrl-C stops an answer, Ctrl-D leaves."
HOST = "commands run on this machine with your rights"
LEAVING = ("/exit", "/quit")
KEYS = """\
/exit: leave; so do /quit and Ctrl-D
Enter sends, Alt-Enter or a \\ before Enter begins a new line, Tab completes, Up brings back.
While the agent works a command acts at once and other lines are queued; Ctrl-C stops the answer."""


class SessionWish(Value):
    """Which conversation a person asks for; a new one when nothing is said."""

    name: str | None = None
    """Begun where there is none."""
    resume: str | None = None
    """One that there is, by its name or the beginning of it."""
    latest: bool = False


class Earlier(Value):
    """How a conversation stood when it was left."""

    asked: str
    answer: str
    """What was said to it, and what the agent waits to hear."""


async def session_of(gateway: Gateway, wish: SessionWish) -> str:
    """The name of the session that is wished for."""
    if wish.resume is not None:
        found = await gateway.read(sessions.find, wish.resume)
        if found.platform != PLATFORM:
            raise sessions.NoSuchSession(
                f"{found.chat!r} is a conversation of {found.platform}: it goes on there"
            )
        return found.chat
    if wish.latest:
        last = await gateway.read(sessions.latest, PLATFORM)
        return last.chat if last else new_id()
    return wish.name or new_id()


class Talk:
    """Question and answer, until the person leaves."""

    def __init__(
        self, runtime: Runtime, settings: Settings, wish: SessionWish, terminal: ChatTerminal
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._wish = wish
        self._terminal = terminal
        self._leaving = False
        """The person said so while the agent worked."""

    async def run(self) -> None:
        terminal = self._terminal
        settings, choice = self._settings, self._runtime.models(self._settings).main()
        terminal.greet(title_of(settings, choice), notes_of(settings, choice))
        async with self._runtime.open_gateway(self._settings, terminal=True) as gateway:
            session = await session_of(gateway, self._wish)
            conversation = TerminalConversation(gateway, session, terminal.new_screen)
            earlier = await gateway.read(recalled, conversation.key)
            if earlier is not None:
                terminal.recall(earlier.asked, earlier.answer)
            elif self._wish.latest:
                terminal.remark("There is no earlier conversation: this is a new one.")
            async with conversation.interrupts.heard():
                spoken = earlier is not None
                while (text := await self._read(conversation)) is not None:
                    await self._say(conversation, text)
                    spoken = True
        if spoken:
            terminal.remark(f"To continue: hermes chat --resume {shlex.quote(session)}")

    async def _read(self, conversation: TerminalConversation) -> str | None:
        interrupts = conversation.interrupts
        while not (interrupts.leaving or self._leaving):
            with interrupts.calling(self._terminal.leave):
                text = await self._terminal.read()
            if text is None or text.strip().casefold() in LEAVING:
                break
            if text.strip():
                return text.strip("\n")
        return None

    async def _say(self, conversation: TerminalConversation, text: str) -> None:
        await self._listen(conversation, partial(conversation.say, text))
        while not self._leaving and await conversation.owes():
            await self._listen(conversation, conversation.follow)
        if text.strip().casefold() == "/help":
            self._terminal.remark(own_help(self._runtime.commands()))

    async def _listen(
        self, conversation: TerminalConversation, answer: Callable[[], Awaitable[TurnEnding]]
    ) -> None:
        """Shows an answer, and hands on what is typed meanwhile."""

        async def hand_on(text: str) -> None:
            if text.strip().casefold() in LEAVING:
                self._leaving = True
            else:
                await conversation.add(text)

        with self._terminal.working():
            async with anyio.create_task_group() as group:
                group.start_soon(self._terminal.overhear, hand_on)
                try:
                    await answer()
                except HermesError as error:
                    self._terminal.remark(str(error))
                group.cancel_scope.cancel()


def own_help(commands: Sequence[SlashCommand]) -> str:
    """Adds to /help the other names of the commands, and the keys of the terminal."""
    others = [f"/{other} is /{one.name}" for one in commands for other in one.aliases]
    return "\n".join([", ".join(others), KEYS])


def title_of(settings: Settings, choice: ModelChoice | None) -> str:
    """The model that answers, and the folder in which its tools work."""
    model = f"{choice.model} ({choice.provider})" if choice else "no model"
    return f"Hermes {__version__} · {model} · {short(settings.workspace)}"


def notes_of(settings: Settings, choice: ModelChoice | None) -> list[str]:
    """What a person should know before they type."""
    notes = [HINT]
    if choice is not None and not choice.tools:
        notes.append(f"{choice.model} only talks: it can't use tools")
    if settings.workspace in (own_folder(), Path(settings.workspace.anchor)):
        notes.append(f"the agent can read and write the files in {short(settings.workspace)}")
    if settings.terminal.backend == "local":
        notes.append(HOST)
    return notes


def short(path: Path) -> str:
    own = own_folder()
    return str("~" / path.relative_to(own)) if own and path.is_relative_to(own) else str(path)


def own_folder() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        # A container may run us under a uid that has no home.
        return None


def recalled(key: str) -> Work[Earlier | None]:
    """The last exchange of the session."""
    try:
        said = yield from sessions.entries(key)
    except sessions.NoSuchSession:
        return None
    asked, answers = "", list[str]()
    for entry in said:
        match entry.message:
            case UserMessage(text=text):
                asked, answers = text, []
            case AssistantMessage(text=text) if text.strip():
                answers.append(text)
    for question in (yield from sessions.waiting(key)):
        choices = (f"{number}. {text}" for number, text in enumerate(question.choices, 1))
        answers.append("\n".join([question.prompt, *choices]))
    return Earlier(asked=asked, answer="\n\n".join(answers))
