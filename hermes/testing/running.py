"""Runs a whole gateway for tests, and waits for conditions."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import msgspec

from hermes.app.gateway import GatewayOverrides, open_gateway
from hermes.boundary.execution.local import LocalBackend
from hermes.control.gateway import Gateway
from hermes.control.targets import TargetPlatform
from hermes.core.models.openai_chat import OpenAIChat
from hermes.entry.supervisor import serve
from hermes.settings import Settings
from hermes.settings.approvals import ApprovalSettings
from hermes.settings.sections import (
    AccessSettings,
    AgentSettings,
    AuxiliarySettings,
    BusSettings,
    CompressionSettings,
    DisplaySettings,
    HumanDelaySettings,
    MemorySettings,
    ModelSettings,
    StreamingSettings,
)
from hermes.settings.terminal import TerminalSettings
from hermes.state.paths import Home
from hermes.testing.commands import EMPTY_ENVIRONMENT
from hermes.testing.scripted import Answer, ChatRequest, refusal
from hermes.testing.stores import store_settings
from hermes.testing.tools import TEST_TOOLS
from hermes.types.bus import Bus
from hermes.types.errors import TransactionConflict
from hermes.types.events import TextDelta
from hermes.types.execution import ExecutionBackend
from hermes.types.identity import OwnerId
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.platforms import PlatformAdapter
from hermes.types.protocols import Emit
from hermes.types.store import OwnerKind, Row, Store, Work
from hermes.types.tools import AnyTool
from hermes.types.value import Value

T = TypeVar("T")
P = ParamSpec("P")

UNTIL_SECONDS = 0.01


class Conditions(Value):
    """The settings, tools and options of the gateway that a test runs."""

    agent: AgentSettings = AgentSettings(drain_seconds=0.0)
    """Settings of the agent. By default, the gateway does not wait for running turns when it ends,
    so it ends as if it were killed."""
    streaming: StreamingSettings = StreamingSettings(edit_interval=0.02, buffer_threshold=1)
    access: AccessSettings = AccessSettings(allow_all=True)
    model: ModelSettings = ModelSettings(default="m", base_url="http://127.0.0.1:9/v1")
    auxiliary: AuxiliarySettings = AuxiliarySettings()
    compression: CompressionSettings = CompressionSettings()
    memory: MemorySettings = MemorySettings(enabled=False)
    """Settings of the memory. By default it is off, because it would call the model at the end of a
    conversation, and the test's model expects no such call."""
    tools: tuple[AnyTool, ...] | None = TEST_TOOLS
    """The tools of the agent; None for all tools that the settings allow."""
    plugins: tuple[object, ...] = ()
    targets: tuple[TargetPlatform, ...] = ()
    """The platforms that messages can be sent to."""
    human_delay: HumanDelaySettings = HumanDelaySettings()
    display: DisplaySettings = DisplaySettings()
    workspace: str = "workspace"
    """The name of the workspace's folder in the home."""
    backend: ExecutionBackend | None = None
    """The execution backend. If it is None, a gateway with `tools` runs commands on this machine,
    and a gateway without `tools` runs no commands."""
    approvals: ApprovalSettings = ApprovalSettings()
    wrap_store: Callable[[Store], Store] = lambda store: store
    bus: BusSettings = BusSettings()
    terminal: bool = False


QUIET = Conditions()
DRAINING = Conditions(agent=AgentSettings(drain_seconds=5.0))
"""Conditions under which running turns have five seconds to finish when the gateway ends."""


_wraps: list[Callable[[Store], Store]] = []
"""The wrappers that `every_store_wrapped` puts around stores, innermost first."""


@contextmanager
def every_store_wrapped(wrap: Callable[[Store], Store]) -> Iterator[None]:
    """Wraps the store of every gateway that the test kit opens inside the block."""
    _wraps.append(wrap)
    try:
        yield
    finally:
        _wraps.pop()


def wrapped_store(store: Store, wrap: Callable[[Store], Store]) -> Store:
    """Returns the store inside the wrappers that `every_store_wrapped` has set. `wrap` adds the
    outermost wrapper."""
    for inner in _wraps:
        store = inner(store)
    return wrap(store)


def _test_backend(home: Path, conditions: Conditions) -> ExecutionBackend | None:
    """Returns a backend that runs commands on this machine, if the conditions have tools. Otherwise
    returns None, and the gateway runs no commands."""
    if conditions.tools is None:
        return None
    return LocalBackend(home / "processes", EMPTY_ENVIRONMENT)


@asynccontextmanager
async def running(
    home: Path,
    adapters: Sequence[PlatformAdapter],
    model: ModelProvider,
    conditions: Conditions = QUIET,
) -> AsyncIterator[Gateway]:
    """Runs a gateway on the store of the home. The gateway serves the adapters until the block
    ends."""
    store = store_settings(home)
    settings = Settings(
        home=Home(root=home),
        workspace=Path(store.shared_folder or home) / conditions.workspace,
        model=conditions.model,
        agent=conditions.agent,
        streaming=conditions.streaming,
        human_delay=conditions.human_delay,
        display=conditions.display,
        access=conditions.access,
        auxiliary=conditions.auxiliary,
        compression=conditions.compression,
        memory=conditions.memory,
        terminal=TerminalSettings(backend="none"),
        approvals=conditions.approvals,
        store=store,
        bus=conditions.bus,
    )
    overrides = GatewayOverrides(
        plugins=conditions.plugins,
        targets=conditions.targets,
        tools=conditions.tools,
        model=model,
        backend=conditions.backend or _test_backend(home, conditions),
        wrap_store=partial(wrapped_store, wrap=conditions.wrap_store),
        # Gateways with different homes do not see each other's credential locks, as if they ran on
        # different machines.
        credential_folder=home / "credentials",
    )
    opened = open_gateway(settings, overrides, terminal=conditions.terminal)
    async with opened as gateway, anyio.create_task_group() as group:
        for adapter in adapters:
            group.start_soon(serve, gateway, adapter)
        try:
            yield gateway
        finally:
            group.cancel_scope.cancel()


async def until(predicate: Callable[[], object], within: float = 5.0) -> None:
    """Returns when the predicate is true. Fails if it is not true within this many seconds."""
    with anyio.move_on_after(within):
        while not predicate():  # noqa: ASYNC110
            await anyio.sleep(UNTIL_SECONDS)
        return
    raise AssertionError(f"the condition was not true within {within} s")


async def rows(store: Store, sql: str, *parameters: object) -> list[Row]:
    """Runs a query on the store, and returns its rows."""

    def work() -> Work[list[Row]]:
        return (yield sql, parameters)

    return await store.run(work)


async def until_rows(
    store: Store, sql: str, wanted: Callable[[list[Row]], object] = bool
) -> list[Row]:
    """Runs a query again and again until `wanted` is true for its rows. Returns these rows. Without
    `wanted`, any row will do. The caller sets the deadline."""
    while not wanted(found := await rows(store, sql)):  # noqa: ASYNC110
        await anyio.sleep(UNTIL_SECONDS)
    return found


def transaction_name(transaction: Callable[..., object]) -> str:
    """Returns the qualified name of the function, even if it is wrapped in a `partial`."""
    while isinstance(transaction, partial):
        transaction = transaction.func
    return transaction.__qualname__


class WrappedStore:
    """A base class for stores that forward everything to another store."""

    def __init__(self, store: Store) -> None:
        self.inner = store

    @property
    def trouble(self) -> str | None:
        return self.inner.trouble

    @property
    def owner(self) -> OwnerId:
        return self.inner.owner

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.inner.run(transaction, *args, **kwargs)

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.inner.read(transaction, *args, **kwargs)

    async def dead(self, kind: OwnerKind | None = None) -> list[OwnerId]:
        return await self.inner.dead(kind)

    @property
    def bus(self) -> Bus | None:
        return self.inner.bus

    def changes(self) -> AsyncIterator[None]:
        return self.inner.changes()

    def permission(self) -> AsyncIterator[bool]:
        return self.inner.permission()


class TroubledStore(WrappedStore):
    """A store that calls a function before each transaction. The function can raise an error, or
    wait."""

    def __init__(self, store: Store, before: Callable[[str], Awaitable[None]]) -> None:
        super().__init__(store)
        self._before = before
        """The function that is called before each transaction, with the qualified name of the
        transaction."""

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        await self._before(transaction_name(transaction))
        return await self.inner.run(transaction, *args, **kwargs)


class ConflictingStore(WrappedStore):
    """A store that runs every transaction twice.

    The first attempt executes all statements, fails with a conflict and is rolled back. The inner
    store then runs the transaction again, as after a serialization failure.
    """

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        attempts = 0

        def conflicting() -> Work[T]:
            nonlocal attempts
            attempts += 1
            first = attempts == 1
            result = yield from transaction(*args, **kwargs)
            if first:
                raise TransactionConflict("the first attempt of every transaction fails: run again")
            return result

        return await self.inner.run(conflicting)


def held(event: anyio.Event, answer: Answer, said: str = "") -> Answer:
    """Returns a scripted answer that emits the text `said` at once, waits for the event, and then
    gives `answer`."""

    async def wait(request: ModelRequest, emit: Emit) -> AssistantMessage:
        if said:
            emit(TextDelta(text=said))
        await event.wait()
        return await answer(request, emit)

    return wait


def refused(request: ModelRequest) -> str | None:
    """Returns the reason why a real server would refuse the request; None if there is no reason."""
    return refusal(msgspec.json.decode(OpenAIChat().body(request), type=ChatRequest))
