"""Several gateways share a store. They keep the order of turns, and pass live events and stops to
each other."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control import following as followings
from hermes.control.gateway import Gateway
from hermes.settings.sections import BusSettings
from hermes.testing import nodes
from hermes.testing.nats import NatsProcess, running_nats
from hermes.testing.nodes import asked, followed, said, states, text_of
from hermes.testing.platforms import ChatServer, PlainAdapter, Update, to_event
from hermes.testing.running import QUIET, Conditions, WrappedStore, held, until
from hermes.testing.scripted import ScriptedModel, calls, hangs, says
from hermes.testing.stores import stored_rows, stores_on_postgres
from hermes.types.bus import Bus
from hermes.types.events import Envelope, TextDelta, TurnFinished
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.platforms import PlatformAdapter
from hermes.types.protocols import Emit

_buses: list[BusSettings] = []
"""The bus settings for the gateways of the running test. The list has one item while a test runs,
and is empty otherwise."""


@pytest.fixture(scope="module")
def nats() -> Iterator[NatsProcess]:
    with running_nats() as server:
        yield server


@pytest.fixture(autouse=True, params=["notifications", "nats"])
def on_postgres(request: pytest.FixtureRequest) -> Iterator[None]:
    url = request.getfixturevalue("nats").url() if request.param == "nats" else ""
    _buses.append(BusSettings(url=url))
    with stores_on_postgres():
        yield
    _buses.pop()


class Speaker:
    """A model that says the words that the test gives it, one at a time."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def says(self, word: str) -> None:
        self._words.append(word)

    async def complete(self, _request: ModelRequest, emit: Emit) -> AssistantMessage:
        said = ""
        while True:
            await until(lambda: self._words, within=60)
            word = self._words.pop(0)
            if word == "end":
                return AssistantMessage(text=said)
            emit(TextDelta(text=word))
            said += word


@asynccontextmanager
async def node(
    folder: Path,
    name: str,
    model: ModelProvider,
    conditions: Conditions = QUIET,
    adapters: tuple[PlatformAdapter, ...] = (),
) -> AsyncIterator[Gateway]:
    """Runs a gateway that uses the bus of the test."""
    conditions = replace(conditions, bus=_buses[-1])
    async with nodes.node(folder, name, model, conditions, adapters) as gateway:
        yield gateway


async def test_a_message_waits_for_the_turn_on_another_node_and_is_answered_after_it(
    tmp_path: Path,
) -> None:
    go = anyio.Event()
    one = ScriptedModel([held(go, says("first")), says("second"), says("third")])
    two = ScriptedModel([says("second"), says("third")])
    async with node(tmp_path, "one", one) as first, node(tmp_path, "two", two) as second:
        await asked(first, "a")
        await until(lambda: one.requests)
        turns = [await asked(second, "b"), await asked(first, "c")]
        found: list[Envelope] = []
        async with anyio.create_task_group() as group:
            group.start_soon(followed, second, turns[1], found)
            await anyio.wait_all_tasks_blocked()
            assert not two.requests
            go.set()
        assert text_of(found) == "third"
    texts = stored_rows(tmp_path, "select text from messages order by id")
    assert [row[0] for row in texts] == ["a", "first", "b", "second", "c", "third"]


async def test_messages_to_several_nodes_are_answered_in_the_order_in_which_they_were_accepted(
    tmp_path: Path,
) -> None:
    models = [ScriptedModel([says("ok")] * 40) for _ in range(3)]
    accepted: list[str] = []
    async with (
        node(tmp_path, "one", models[0]) as one,
        node(tmp_path, "two", models[1]) as two,
        node(tmp_path, "three", models[2]) as three,
    ):
        for number in range(30):
            await asked((one, two, three)[number % 3], f"m{number}")
            accepted.append(f"m{number}")
        await until(lambda: states(tmp_path) == [("completed", 1)] * 30, within=20)
    found = stored_rows(tmp_path, "select text from messages where role = 'user' order by id")
    assert [row[0] for row in found] == accepted


async def test_a_reader_on_another_node_gets_the_words_while_the_turn_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The turn stores nothing before its end, and the reader looks into the store only once a
    # minute. So the words can come only over the bus.
    monkeypatch.setattr(followings, "STORE_SECONDS", 60.0)
    model = Speaker()
    async with (
        node(tmp_path, "one", model) as one,
        node(tmp_path, "two", ScriptedModel([])) as two,
    ):
        turn = await asked(one, "talk")
        found: list[Envelope] = []
        model.says("He")
        async with anyio.create_task_group() as group:
            group.start_soon(followed, two, turn, found)
            await until(lambda: text_of(found) == "He")
            for word in ("llo", " wor", "ld", "!" * 5000, "ä" * 5000):
                model.says(word)
            await until(lambda: text_of(found).endswith("ä" * 5000))
            late: list[Envelope] = []
            group.start_soon(followed, two, turn, late, found[0].seq)
            await until(lambda: text_of(late) == text_of(found)[2:])
            model.says("end")
        assert text_of(found) == "Hello world" + "!" * 5000 + "ä" * 5000
        assert isinstance(found[-1].event, TurnFinished)
        numbers = [envelope.seq for envelope in found]
        assert numbers == sorted(set(numbers))
        assert isinstance(late[-1].event, TurnFinished)


class SilentBus:
    """A bus that loses every message."""

    async def send(self, texts: object, to: object = None) -> None:
        pass

    async def received(self) -> AsyncIterator[str]:
        await anyio.sleep_forever()
        yield ""

    async def announce(self, commit: int) -> None:
        pass

    async def announced(self) -> AsyncIterator[int | None]:
        await anyio.sleep_forever()
        yield None


class DeafStore(WrappedStore):
    """A store whose bus loses everything. So a process notices the changes of other processes only
    when it reads the rows again."""

    @property
    def bus(self) -> Bus:
        return SilentBus()


async def test_without_notifications_a_reader_on_another_node_gets_everything_from_the_store(
    tmp_path: Path,
) -> None:
    go = anyio.Event()
    one = ScriptedModel([calls(("append", {"token": "t"}), text="Step. "), held(go, says("Done."))])
    async with (
        node(tmp_path, "one", one) as first,
        node(tmp_path, "two", ScriptedModel([]), replace(QUIET, wrap_store=DeafStore)) as second,
    ):
        turn = await asked(first, "work")
        found: list[Envelope] = []
        async with anyio.create_task_group() as group:
            group.start_soon(followed, second, turn, found)
            await until(lambda: text_of(found) == "Step. ")
            go.set()
        assert text_of(found) == "Step. Done."


async def test_stop_on_one_node_stops_the_turn_on_another(tmp_path: Path) -> None:
    async with (
        node(tmp_path, "one", ScriptedModel([hangs()])) as one,
        node(tmp_path, "two", ScriptedModel([])) as two,
    ):
        await asked(one, "work")
        await until(lambda: one.busy)
        with anyio.fail_after(2):
            await said(two, "/stop")
            await until(lambda: not one.busy)
    assert states(tmp_path) == [("stopped", 1)]


async def test_the_answer_of_another_node_is_sent_by_the_node_that_holds_the_account(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    silent, answering = ScriptedModel([]), ScriptedModel([says("hello")])
    update = Update(id=1, chat="2", user="8", text="hi")
    async with (
        node(tmp_path, "one", silent, adapters=(PlainAdapter(server),)),
        node(tmp_path, "two", answering) as two,
    ):
        await two.accept(to_event(update, "plain"))
        await until(lambda: server.texts("2") == ["hello"])


@pytest.mark.parametrize("on_postgres", ["nats"], indirect=True)
async def test_readers_on_other_nodes_get_words_at_once_again_after_an_outage_of_nats(
    tmp_path: Path, nats: NatsProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The reader looks into the store only once a minute, so the words can arrive in time only over
    # the bus.
    monkeypatch.setattr(followings, "STORE_SECONDS", 60.0)
    model = Speaker()
    async with (
        node(tmp_path, "one", model) as one,
        node(tmp_path, "two", ScriptedModel([])) as two,
    ):
        turn = await asked(one, "talk")
        found: list[Envelope] = []
        model.says("before ")
        async with anyio.create_task_group() as group:
            group.start_soon(followed, two, turn, found)
            await until(lambda: text_of(found) == "before ", within=20)
            nats.stop()
            model.says("during ")
            nats.start()
            await until(lambda: text_of(found) == "before during ", within=20)
            model.says("after")
            await until(lambda: text_of(found) == "before during after", within=20)
            model.says("end")
    assert states(tmp_path) == [("completed", 1)]


@pytest.mark.parametrize("on_postgres", ["nats"], indirect=True)
async def test_during_an_outage_of_nats_messages_are_answered_and_streams_continue(
    tmp_path: Path, nats: NatsProcess
) -> None:
    go = anyio.Event()
    one = ScriptedModel(
        [
            calls(("append", {"token": "t"}), text="Step. "),
            held(go, says("Done.")),
            says("second"),
        ]
    )
    async with (
        node(tmp_path, "one", one) as first,
        node(tmp_path, "two", ScriptedModel([says("second")])) as second,
    ):
        nats.stop()
        turn = await asked(first, "work")
        found: list[Envelope] = []
        async with anyio.create_task_group() as group:
            group.start_soon(followed, second, turn, found)
            await until(lambda: text_of(found) == "Step. ", within=20)
            await asked(second, "more")
            go.set()
        assert text_of(found) == "Step. Done."
        await until(lambda: states(tmp_path) == [("completed", 1)] * 2, within=20)
        nats.start()
