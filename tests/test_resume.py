"""A turn of thirty steps is killed at every change, is resumed, and does nothing twice.

A restarted gateway knows only the data on the disk and on the platform. So the test copies this
data after every change, and another gateway resumes the turn from the copy. All kills between two
changes have the same effect, so one copy represents all of them. Another test kills real processes.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream
from msgspec.structs import replace

from hermes.control.sending import REPEAT
from hermes.core.models.wires import builtin_wire_formats, wire_formats
from hermes.core.tools.call import UNKNOWN_OUTCOME
from hermes.core.tools.read_file import read_file_tool
from hermes.state.paths import STORE_NAME
from hermes.state.spill import Spill
from hermes.state.sqlite.store import open_store
from hermes.testing import crash_checks, vendors
from hermes.testing.crash_child import APPENDED, READS
from hermes.testing.crash_stage import Armed, SimulatedPerson, Stage, forked
from hermes.testing.long_turn import ANSWER, FILE, PLANS, STEPS, TOKENS, LongModel
from hermes.testing.model import FakeModel
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import (
    DRAINING,
    Conditions,
    WrappedStore,
    refused,
    rows,
    running,
    transaction_name,
    until,
)
from hermes.testing.scripted import Plan, ScriptedModel, says
from hermes.testing.tools import append
from hermes.types.identity import Target
from hermes.types.messages import Content, Message, MessageRef, ToolMessage
from hermes.types.models import ModelRequest
from hermes.types.store import Store, Work
from hermes.types.tools import A, AnyTool, Tool, ToolContext
from hermes.types.value import Value

pytestmark = pytest.mark.slow

T = TypeVar("T")
P = ParamSpec("P")

WHOLE = 10
"""In every tenth copy, the turn is resumed with all its remaining steps. In the other copies, the
model ends the turn with its next answer, to save time."""
REQUEST = "Work for thirty steps."
CLOSED, DELIVERED = "TurnTransactions.close", "Sending._mark_delivered"
"""After a kill between these two changes, the next gateway can't know whether the platform has
already shown the answer. So the answer is sent again, marked as a possible repeat."""


class Moment(Value):
    """The state in which a kill at one moment would leave the home and the platform."""

    change: str
    """The name of the last change before the kill, such as `TurnTransactions.close`."""
    home: Path
    shown: tuple[str, ...]
    """The messages that the platform shows at this moment."""


class World:
    """A home and a platform. After each change, the gateway waits until the test has received a
    copy of this home and platform."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.platform = ChatServer()
        self.model = LongModel()
        watched = self._watched(append)
        self.conditions = replace(
            conditions(self.home, watched), wrap_store=partial(WatchedStore, self)
        )
        self.changing = anyio.Lock()
        self._send, self._moments = anyio.create_memory_object_stream[Moment]()
        self._root = root
        self._count = 0
        self._open = False

    async def __aenter__(self) -> MemoryObjectReceiveStream[Moment]:
        self._open = True
        return self._moments

    async def __aexit__(self, *_: object) -> None:
        self._open = False
        self._send.close()
        self._moments.close()

    async def changed(self, change: str) -> None:
        """Copies the home and the platform's messages, and sends the copy to the test."""
        if not self._open:
            return
        self._count += 1
        copy = self._root / f"copy{self._count}"
        # The program `cp` makes the copy. If this process opened and closed the database file, it
        # would lose SQLite's locks on the file.
        await anyio.run_process(["cp", "-a", self.home, copy])
        moment = Moment(change=change, home=copy, shown=tuple(self.platform.texts()))
        # The test stops reading when the turn has ended.
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._send.send(moment)

    def _watched(self, tool: Tool[A]) -> Tool[A]:
        async def handler(context: ToolContext, arguments: A) -> str:
            async with self.changing:
                text = await tool.handler(context, arguments)
                await self.changed(text)
            return text

        return replace(tool, handler=handler)


class WatchedStore(WrappedStore):
    def __init__(self, world: World, store: Store) -> None:
        super().__init__(store)
        self._world = world

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        name = transaction_name(transaction)
        async with self._world.changing:
            result = await self.inner.run(transaction, *args, **kwargs)
            if name not in READS:
                await self._world.changed(name)
        return result


class WatchedAdapter(PlainAdapter):
    def __init__(self, world: World) -> None:
        super().__init__(world.platform)
        self._world = world

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        async with self._world.changing:
            sent = await super().send(target, content, key)
            await self._world.changed("send")
        return sent


def conditions(home: Path, tool: AnyTool = append) -> Conditions:
    return replace(DRAINING, tools=(tool, read_file_tool(Spill(home / "spill"))))


async def test_a_long_turn_survives_a_kill_after_every_change(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.home / "workspace").mkdir(parents=True)
    (world.home / "workspace" / FILE).write_text("a note\n" * 5)
    changes: Counter[str] = Counter()
    first: list[ModelRequest] = []
    asking = 0
    opened = running(world.home, [WatchedAdapter(world)], world.model, world.conditions)
    async with opened, world as moments:
        world.platform.says(REQUEST)
        async for moment in moments:
            changes[moment.change] += 1
            doubtful = changes[CLOSED] > 0 and moment.change not in (CLOSED, DELIVERED)
            asked = await gone_on(moment, whole=changes.total() % WHOLE == 0, doubtful=doubtful)
            first += asked[:1]
            asking += not changes[CLOSED]
            if moment.change == DELIVERED:
                break
    assert len(world.model.requests) == STEPS
    assert set(TOKENS) <= {change.removeprefix("appended ") for change in changes}
    for request in first:
        undisturbed = world.model.requests[int(request.step.rpartition("_")[2])]
        assert same(request.messages, undisturbed.messages)
    assert len(first) == asking, "every restart before the answer goes on with it"


async def gone_on(moment: Moment, *, whole: bool, doubtful: bool) -> Sequence[ModelRequest]:
    """Resumes the turn from a copy, and checks all guarantees. Returns the requests to the
    model."""
    platform = ChatServer()
    platform.says(REQUEST)
    for text in moment.shown:
        await platform.send("1", Content(text=text), "earlier")
    model = LongModel() if whole else ScriptedModel([says(ANSWER)])
    async with open_store(moment.home / STORE_NAME) as store:
        # The row of the turn names the workspace of the original home. It must name the workspace
        # of the copy, in which the turn is resumed.
        await rows(store, "update turns set workspace = ?", str(moment.home / "workspace"))
    async with running(moment.home, [PlainAdapter(platform)], model, conditions(moment.home)):
        await until(platform.texts, 20)
    check_requests(model.requests)
    check_effects(moment.home, model.requests, whole=whole)
    check_answer(platform.texts(), doubtful=doubtful)
    shutil.rmtree(moment.home)
    return model.requests


def check_requests(requests: Sequence[ModelRequest]) -> None:
    """Checks that a chat completions server accepts all requests, and that every vendor accepts the
    first request."""
    assert [reason for request in requests if (reason := refused(request))] == []
    for request in requests[:1]:
        for name, wire in wire_formats(builtin_wire_formats()).items():
            vendors.check(name, wire.body(request))


def check_effects(home: Path, requests: Sequence[ModelRequest], *, whole: bool) -> None:
    """Checks that no tool ran twice, and that the model knows which tools ran."""
    path = home / "workspace" / "appended"
    done = Counter(path.read_text().split() if path.exists() else ())
    assert set(done.values()) <= {1}
    if not requests:
        return
    results = [one for one in requests[-1].messages if isinstance(one, ToolMessage)]
    told = {one.text.removeprefix("appended ") for one in results if "appended " in one.text}
    unknown = [one for one in results if one.text == UNKNOWN_OUTCOME]
    assert told <= done.keys()
    assert len(done.keys() - told) <= len(unknown) <= 1
    if whole:
        assert len(told) + len(unknown) == len(TOKENS)


def check_answer(texts: Sequence[str], *, doubtful: bool) -> None:
    assert all(text.endswith(ANSWER) for text in texts)
    unmarked = [text for text in texts if not text.startswith(REPEAT)]
    assert len(unmarked) == 1 or (doubtful and not unmarked)
    assert len(texts) == 1 or doubtful


def same(resumed: Sequence[Message], undisturbed: Sequence[Message]) -> bool:
    """Returns whether the conversations are equal. A tool result in `resumed` may differ in one
    way: it may say that the outcome of the call is unknown."""
    known = [
        other if isinstance(one, ToolMessage) and one.text == UNKNOWN_OUTCOME else one
        for one, other in zip(resumed, undisturbed, strict=True)
    ]
    return known == list(undisturbed)


KILLS = (
    "after Intake.take 1",
    "in model 1",
    "after TurnCheckpoint.started.work 1",
    "in append 1",
    "before TurnCheckpoint.answered.work 2",
    "after append 2",
    "before TurnCheckpoint.said.work 3",
    "after TurnCheckpoint.said.work 2",
    "before append 1",
    "after read_file 3",
    "after TurnCheckpoint.answered.work 4",
    "after model 2",
    "before TurnTransactions.close 1",
    "after TurnTransactions.close 1",
)
"""The points at which the processes of the gateway are killed. The number at the end says how often
the process passes the point: with 2, it is killed when it passes the point for the second time."""


@pytest.mark.parametrize("account", ["plain", "editing"])
async def test_a_long_turn_survives_many_kills_in_a_row(tmp_path: Path, account: str) -> None:
    plans = (*PLANS[:-1], Plan(tokens=30))
    async with FakeModel(turn=plans) as model:
        stage = Stage(tmp_path, model.base_url, forked)
        for number, point in enumerate(KILLS):
            stage.armed[number] = Armed(fail_at=point, count=False, from_start=True)
        with anyio.fail_after(60):
            async with stage.open():
                await SimulatedPerson(stage, account, "1").ask("plain")
                await stage.quiet()
    assert crash_checks.check(stage).violations == []
    assert stage.deaths[-9] == len(KILLS)
    assert model.stats.refused == {}
    for body in model._bodies:
        vendors.check("chat", body)
    assert set(Counter((tmp_path / "workspace" / APPENDED).read_text().split()).values()) == {1}
