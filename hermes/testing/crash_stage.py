"""The test environment of a gateway that is killed: its home, two fake platforms, a fake model, and
people who write."""

import itertools
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Literal, Protocol, TypedDict

import anyio
import anyio.abc
import msgspec
from anyio.streams.text import TextReceiveStream

from hermes.testing.crash_api import Exchange
from hermes.testing.crash_child import Options, run
from hermes.testing.forking import start_forked
from hermes.testing.platforms import Shown
from hermes.testing.remote import Rooms, serve_rooms
from hermes.testing.scripted import is_complete
from hermes.testing.stores import store_url, stored_rows
from hermes.types.value import Value

POLL_SECONDS = 0.02
QUIET_SECONDS = 15.0
CrashKind = Literal["plain", "stream", "append", "both", "ask", "spawn", "steps", "endless", "held"]
TEXTS: dict[CrashKind, str] = {
    "plain": "{q} how are you today",
    "stream": "{q} tokens:18 delay:0.02",
    "append": '{q} tool:append{{"token":"{q}"}}',
    "both": '{q} tool:read_file{{"path":"notes.txt"}} tool:append{{"token":"{q}"}}',
    "ask": '{q} tool:ask{{"question":"which-{q}"}}',
    "spawn": '{q} tool:spawn{{"token":"{q}"}}',
    "steps": '{q} tool:read_file{{"path":"notesSTEP.txt"}} steps:3',
    "endless": "{q} tokens:4000 delay:0.02",
    "held": '{q} tool:spawn{{"token":"{q}","held":true}}',
}
STOPPED = "(stopped"


class Child(Protocol):
    """A gateway process."""

    def kill(self) -> None: ...
    async def wait(self) -> int: ...


Launch = Callable[[Options], Awaitable[Child]]


class Armed(TypedDict):
    """The point at which a gateway process kills itself, and the way in which the process counts
    points."""

    fail_at: str
    count: bool
    from_start: bool


class Sent(Value):
    """A message of a person, which must be answered."""

    account: str
    chat: str
    token: str
    """A word that no other message contains. Answers quote it."""
    kind: CrashKind

    def answered_by(self, text: str) -> bool:
        if self.kind in ("endless", "held") and STOPPED in text:
            return True
        return self.token in text.split() and is_complete(text)


class Stage:
    def __init__(self, home: Path, model: str, launch: Launch, *, isolated: bool = False) -> None:
        """`isolated` says whether the gateways run commands in the sandbox."""
        self.home = home
        self._isolated = isolated
        self.model = model
        self.rooms = {"plain": Rooms(), "editing": Rooms()}
        self.armed: dict[int, Armed] = {}
        """Maps the number of a gateway process to the point at which this process kills itself. The
        first process has the number 0."""
        self.sent: list[Sent] = []
        self.exchanges: list[Exchange] = []
        """The finished exchanges of API clients with the gateway."""
        self.answered = self.kills = 0
        self.starts: list[float] = []
        self.deaths: Counter[int] = Counter()
        """Maps each exit code to the number of gateway processes that ended with it."""
        self._launch = launch
        self._child: Child | None = None
        self._tokens = itertools.count(1)
        self._port = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Serves the platforms, and starts the gateway again whenever it has ended."""
        workspace = self.home / "workspace"
        workspace.mkdir(parents=True)
        for name in ("notes", "notes0", "notes1", "notes2"):
            (workspace / f"{name}.txt").write_text("a note\n")
        async with anyio.create_task_group() as group:
            self._port = await group.start(serve_rooms, self.rooms)
            group.start_soon(self._keep_running)
            try:
                yield
            finally:
                group.cancel_scope.cancel()

    def kill(self) -> None:
        """Kills the gateway with SIGKILL, if it runs."""
        if self._child is not None:
            _end(self._child)
            self.kills += 1

    async def restarted(self, times: int) -> None:
        await self.until(lambda: len(self.starts) > times)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits until the condition is true. The caller sets the deadline."""
        while not condition():  # noqa: ASYNC110
            await anyio.sleep(POLL_SECONDS)

    async def quiet(self) -> None:
        """Returns when no work is left in the store, or after some seconds."""
        with anyio.move_on_after(QUIET_SECONDS):
            await self.until(lambda: not any(self.unfinished().values()))

    def unfinished(self) -> dict[str, int]:
        """Returns the number of unfinished rows of each kind in the store."""
        kinds = {
            "open turns": "turns where state in ('running', 'suspended')",
            "messages unanswered": "inbox where state <> 'done'",
            "deliveries owed": "deliveries where state not in ('delivered', 'dead')",
        }
        counts = ", ".join(f"(select count(*) from {where})" for where in kinds.values())  # noqa: S608
        # One query counts all kinds of rows, because each query opens a new connection.
        (found,) = stored_rows(self.home, f"select {counts}")
        return dict(zip(kinds, map(int, found), strict=True))

    def calls(self) -> int:
        """Returns the number of tool calls that were started and must not run twice."""
        return self.count("calls")

    def count(self, where: str) -> int:
        """Returns the number of rows. `where` is the name of a table, optionally with a
        condition."""
        ((found,),) = stored_rows(self.home, f"select count(*) from {where}")  # noqa: S608
        return int(found)

    def token(self) -> str:
        return f"q{next(self._tokens)}"

    def recovery(self) -> dict[str, str]:
        """Returns statistics of the recovery time: the seconds from the start of a gateway process
        to its first call to a platform."""
        calls = sorted(at for server in self.rooms.values() for at, _, _ in server.calls)
        took: list[float] = []
        for since, until in itertools.pairwise([*self.starts[1:], float("inf")]):
            first = next((at for at in calls if since < at < until), None)
            took += [first - since] if first else []
        if len(took) < 2:
            return {}
        percentiles = statistics.quantiles(took, n=100, method="inclusive")
        return {"recovery p50, p99": f"{percentiles[49]:.2f} s, {percentiles[98]:.2f} s"}

    async def _keep_running(self) -> None:
        while True:
            options = Options(
                home=str(self.home),
                port=self._port,
                model=self.model,
                store_url=store_url(self.home),
                isolated=self._isolated,
            )
            if armed := self.armed.get(len(self.starts)):
                options = msgspec.structs.replace(options, **armed)
            self._child = await self._launch(options)
            self.starts.append(time.time())
            try:
                self.deaths[await self._child.wait()] += 1
            finally:
                _end(self._child)
                with anyio.CancelScope(shield=True):
                    await self._child.wait()
                self._child = None


class SimulatedPerson:
    """A person who writes to the gateway in a separate chat."""

    def __init__(self, stage: Stage, account: str, chat: str) -> None:
        self._stage = stage
        self._account = account
        self._chat = chat
        self._room = stage.rooms[account]
        self._open = 0

    def say(self, kind: CrashKind) -> Sent:
        sent = Sent(account=self._account, chat=self._chat, token=self._stage.token(), kind=kind)
        self._stage.sent.append(sent)
        self._open += 1
        self._room.says(TEXTS[kind].format(q=sent.token), chat=self._chat)
        return sent

    def command(self, text: str) -> None:
        self._room.says(text, chat=self._chat)

    def decide(self, sent: Sent) -> None:
        self._room.says(f"decided-{sent.token}", chat=self._chat)

    async def ask(self, kind: CrashKind) -> None:
        """Sends a message of this kind, and waits for the answer. If the agent asks a question
        first, the person answers the question."""
        sent = self.say(kind)
        if kind == "ask":
            await self.questioned(sent)
            self.decide(sent)
        await self.answered(sent)

    async def answered(self, sent: Sent) -> None:
        await self._until(lambda shown: any(sent.answered_by(one.text) for one in shown))
        self._open -= 1
        self._stage.answered += 1

    async def all_answered(self) -> None:
        await self._stage.until(lambda: not self._open)

    async def begun(self, sent: Sent) -> None:
        """Waits until the first words of the answer are in the chat."""
        await self._until(lambda shown: any(sent.token in one.text.split() for one in shown))

    async def questioned(self, sent: Sent) -> None:
        await self._until(lambda shown: any(f"which-{sent.token}" in one.text for one in shown))

    async def _until(self, condition: Callable[[list[Shown]], bool]) -> None:
        await self._room.until(self._chat, condition)


def _end(child: Child) -> None:
    with suppress(ProcessLookupError):
        child.kill()


async def spawned(options: Options) -> Child:
    """Starts a gateway as a new Python process, which imports everything itself."""
    flags = [f"--{name}={value}" for name, value in _flags(options).items()]
    command = [sys.executable, "-m", "hermes.testing.crash_child", *flags]
    return await anyio.open_process(command, stdin=None, stdout=None, stderr=None)


def _flags(options: Options) -> dict[str, str]:
    return {
        "home": options.home,
        "port": str(options.port),
        "model": options.model,
        "store-url": options.store_url,
    }


class Forked:
    """A gateway process that starts at once, because it is forked from a process that has already
    imported everything."""

    def __init__(self, options: Options) -> None:
        self._process = start_forked(run, options)

    def kill(self) -> None:
        self._process.kill()

    async def wait(self) -> int:
        if self._process.exitcode is None:
            await anyio.wait_readable(self._process.sentinel)
            self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


async def forked(options: Options) -> Child:
    return Forked(options)


@asynccontextmanager
async def running_model() -> AsyncIterator[str]:
    """Runs a model in a process of its own, and yields its base URL."""
    command = [sys.executable, "-m", "hermes.testing.model"]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        said = ""
        async for text in TextReceiveStream(process.stdout):
            said += text
            if "\n" in said:
                break
        try:
            yield said.split()[-1]
        finally:
            process.kill()
