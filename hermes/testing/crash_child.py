"""A real gateway process that can be killed anywhere, and that can kill itself at a named point.

A point is a place where a kill could do damage: before or after a commit, a call of a platform, a
call of a tool, or a call of the model. A first run of the gateway, without a kill, lists the points
that a scenario passes.
"""

import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import aiohttp
import anyio
import anyio.lowlevel
import click
import msgspec
from msgspec.structs import replace

from hermes.app.gateway import GatewayOverrides, open_gateway
from hermes.core.models.retry import Retrying
from hermes.core.tools.read_file import read_file_tool
from hermes.entry.http.server import ApiOptions, serve_http
from hermes.entry.supervisor import serve
from hermes.settings import Settings, load
from hermes.state.spill import Spill
from hermes.testing.commands import crash_backend
from hermes.testing.crash_api import API_KEY, tell_address
from hermes.testing.platforms import Batch, EditingAdapter, PlainAdapter, PlatformWire
from hermes.testing.remote import PlatformConnection, RemoteWire
from hermes.testing.running import WrappedStore, transaction_name
from hermes.testing.upstream import model_client
from hermes.types.events import AgentEvent, TextDelta
from hermes.types.messages import AssistantMessage, Content
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.platforms import PlatformAdapter
from hermes.types.protocols import Emit
from hermes.types.store import Store, Work
from hermes.types.tools import A, AnyTool, NeedsPerson, Tool, ToolContext
from hermes.types.turns import Answered, Question
from hermes.types.value import Value

log = logging.getLogger(__name__)

T = TypeVar("T")
P = ParamSpec("P")

APPENDED = "appended.txt"
"""The file in the workspace to which the tool `append` writes."""
SPAWNED = "-spawned.txt"
"""A command of the tool `spawn` writes to a file in the workspace. The name of the file is the
token of the message, followed by this text."""
EDIT_SECONDS = 0.1
FILE_POLL_SECONDS = 0.01
READS = {
    "running_of",
    "owed_chats",
    "freezes",
    "open_of",
    "owed_before",
    "Recovery._to_resume",
    "load",
    "_expire_questions",
    "forget_requests",
    "forget_messages",
}
"""Transactions that change nothing in these scenarios. The process is not killed before or after
them, because this would have the same effect as a kill at another point."""


class Options(Value):
    home: str
    port: int
    """The port on this machine at which the fake platforms listen."""
    model: str
    store_url: str = ""
    """The address of the database; empty for SQLite in the home."""
    fail_at: str = ""
    """The point at which the process kills itself; empty if it does not kill itself."""
    count: bool = False
    """Whether the process writes a list of the points at which it could be killed."""
    from_start: bool = False
    """Whether the process counts the points from its start. Otherwise the process counts the points
    from the first update of a platform. A point is a moment at which the process can be killed."""
    isolated: bool = False
    """Whether commands run in the sandbox. Otherwise they run without isolation."""


class Points:
    """Counts the points that are passed, and kills the process at the requested point."""

    def __init__(self, options: Options) -> None:
        self.armed = options.from_start
        self._fail_at = options.fail_at
        self._list = points_file(Path(options.home)) if options.count else None
        self._passed: Counter[str] = Counter()

    def passes(self, name: str) -> None:
        if not self.armed:
            return
        self._passed[name] += 1
        point = f"{name} {self._passed[name]}"
        if self._list:
            with self._list.open("a") as file:
                file.write(f"{point}\n")
        if point == self._fail_at:
            os.kill(os.getpid(), signal.SIGKILL)


def points_file(home: Path) -> Path:
    return home / "points.txt"


def log_file(home: Path) -> Path:
    return home / "gateway.log"


class PointedStore(WrappedStore):
    """A store in which the process can be killed right before and right after each commit."""

    def __init__(self, points: Points, store: Store) -> None:
        super().__init__(store)
        self._points = points

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        name = transaction_name(transaction).replace(".<locals>", "")
        if name in READS:
            return await self.inner.run(transaction, *args, **kwargs)
        if name == "Intake.take":
            self._points.armed = True
        self._points.passes(f"before {name}")
        result = await self.inner.run(transaction, *args, **kwargs)
        self._points.passes(f"after {name}")
        return result


class PointedWire:
    """A connection to a platform. The process can be killed right before each call, and right after
    the platform has accepted the call."""

    def __init__(self, points: Points, wire: PlatformWire) -> None:
        self._points = points
        self._wire = wire

    async def updates(self, token: str) -> Batch:
        found = await self._wire.updates(token)
        self._points.armed = True
        return found

    async def send(self, chat: str, content: Content, key: str) -> str:
        self._points.passes("before send")
        id = await self._wire.send(chat, content, key)
        self._points.passes("after send")
        return id

    async def edit(self, id: str, content: Content) -> None:
        self._points.passes("before edit")
        await self._wire.edit(id, content)
        self._points.passes("after edit")

    async def typing(self, chat: str) -> None:
        await self._wire.typing(chat)


class PointedModel:
    """A model. The process can be killed before, during and after each model call."""

    def __init__(self, points: Points, model: ModelProvider) -> None:
        self._points = points
        self._model = model

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        spoken = False

        def hear(event: AgentEvent) -> None:
            nonlocal spoken
            emit(event)
            if isinstance(event, TextDelta) and not spoken:
                spoken = True
                self._points.passes("in model")

        self._points.passes("before model")
        message = await self._model.complete(request, hear)
        self._points.passes("after model")
        return message


class AppendToken(msgspec.Struct, forbid_unknown_fields=True):
    token: str


class AskPerson(msgspec.Struct, forbid_unknown_fields=True):
    question: str


class SpawnProcess(msgspec.Struct, forbid_unknown_fields=True):
    token: str
    held: bool = False
    """Whether the command runs until it is stopped. Otherwise it ends when it has written the
    token."""


async def _append(points: Points, context: ToolContext, arguments: AppendToken) -> str:
    path = Path(context.turn.profile.workspace, APPENDED)
    async with await anyio.open_file(path, "a") as file:
        await file.write(f"{arguments.token}\n")
    points.passes("in append")
    await anyio.lowlevel.checkpoint()
    return f"appended {arguments.token}"


async def _ask(context: ToolContext, arguments: AskPerson) -> str:
    match context.decision:
        case None:
            raise NeedsPerson(
                Question(call=context.call, kind="question", prompt=arguments.question)
            )
        case Answered(text=text):
            return f"they said {text}"
        case other:
            return f"undecided: {other}"


class PointedObserver:
    """An observer of a command. The process can be killed right before and right after the handle
    of the command is committed."""

    def __init__(self, points: Points, context: ToolContext) -> None:
        self._points = points
        self._context = context
        self.begun = anyio.Event()

    async def started(self, handle: str) -> None:
        self._points.passes("gated spawn")
        await self._context.started(handle)
        self.begun.set()

    def progress(self, text: str) -> None:
        self._context.progress(text)


async def _spawn(points: Points, context: ToolContext, arguments: SpawnProcess) -> str:
    observer, sandbox = PointedObserver(points, context), context.sandbox
    path = f"{arguments.token}{SPAWNED}"
    command = f"echo {arguments.token} >> {path}; sleep 600"
    async with anyio.create_task_group() as group:
        group.start_soon(partial(sandbox.run, command, observer, seconds=600.0))
        await observer.begun.wait()
        while not await sandbox.stat(path):  # noqa: ASYNC110
            await anyio.sleep(FILE_POLL_SECONDS)
        points.passes("in spawn")
        if not arguments.held:
            group.cancel_scope.cancel()
    written = (await sandbox.read(path)).decode()
    return f"spawned and ended, wrote {' '.join(written.split())}"


def tools(points: Points, home: Path) -> list[AnyTool]:
    append = _pointed(
        points,
        Tool(
            name="append",
            description="Adds a line to a file.",
            arguments=AppendToken,
            handler=partial(_append, points),
        ),
    )
    ask = _pointed(
        points,
        Tool(
            name="ask",
            description="Asks the person.",
            arguments=AskPerson,
            handler=_ask,
            repeatable=True,
        ),
    )
    spawn = _pointed(
        points,
        Tool(
            name="spawn",
            description="Runs a process for a while.",
            arguments=SpawnProcess,
            handler=partial(_spawn, points),
        ),
    )
    read = _pointed(points, read_file_tool(Spill(home / "spill")))
    return [append, ask, spawn, read]


def _pointed(points: Points, tool: Tool[A]) -> Tool[A]:
    async def handler(context: ToolContext, arguments: A) -> str:
        points.passes(f"before {tool.name}")
        text = await tool.handler(context, arguments)
        points.passes(f"after {tool.name}")
        return text

    return replace(tool, handler=handler)


def settings_of(options: Options) -> Settings:
    environ = {
        "GATEWAY_ALLOW_ALL_USERS": "1",
        "HERMES_CUSTOM_BASE_URL": options.model,
        "HERMES_MODEL": "fake",
        "HERMES_RESTART_DRAIN_TIMEOUT": "0",
        "HERMES_STORE_URL": options.store_url,
    }
    settings = load(Path(options.home), environ)
    # With this short interval, even an answer that takes half a second has a preview and edits.
    return replace(settings, streaming=replace(settings.streaming, edit_interval=EDIT_SECONDS))


async def work(options: Options) -> None:
    """Serves both platforms and the API, until the process is killed or the connection to the
    platforms ends."""
    points, home = Points(options), Path(options.home)
    async with (
        await anyio.connect_tcp("127.0.0.1", options.port) as stream,
        aiohttp.ClientSession() as http,
    ):
        connection = PlatformConnection(stream)

        def wire(account: str) -> PlatformWire:
            return PointedWire(points, RemoteWire(connection, account))

        adapters: list[PlatformAdapter] = [
            PlainAdapter(wire("plain")),
            EditingAdapter(wire("editing")),
        ]
        overrides = GatewayOverrides(
            tools=tools(points, home),
            model=PointedModel(points, Retrying(model_client(http))),
            backend=crash_backend(home, isolated=options.isolated),
            wrap_store=partial(PointedStore, points),
        )
        async with (
            open_gateway(settings_of(options), overrides) as gateway,
            anyio.create_task_group() as group,
        ):
            for adapter in adapters:
                group.start_soon(serve, gateway, adapter)
            api = ApiOptions(key=API_KEY, port=0)
            group.start_soon(serve_http, gateway, api, partial(tell_address, home))
            await connection.run()


def run(options: Options) -> None:
    logging.basicConfig(
        filename=log_file(Path(options.home)),
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(message)s",
    )
    try:
        anyio.run(work, options, backend_options={"use_uvloop": sys.platform != "win32"})
    except Exception:
        log.exception("the gateway broke")
        raise


@click.command(help=__doc__)
@click.option("--home", required=True)
@click.option("--port", required=True, type=int, help="where the platforms are served")
@click.option("--model", required=True, help="base URL of the model")
@click.option("--store-url", default="", help="the address of the database")
@click.option("--fail-at", default="", help="the point to die at, such as 'after send 2'")
@click.option("--count", is_flag=True, help="write the points passed to HOME/points.txt")
@click.option("--from-start", is_flag=True, help="count from the start")
def main(
    home: str,
    port: int,
    model: str,
    store_url: str,
    fail_at: str,
    *,
    count: bool,
    from_start: bool,
) -> None:
    run(
        Options(
            home=home,
            port=port,
            model=model,
            store_url=store_url,
            fail_at=fail_at,
            count=count,
            from_start=from_start,
        )
    )


if __name__ == "__main__":
    main()
