"""The events of a turn are sent only to the nodes that have readers of the turn."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio
import pytest

from hermes.control import live_relay
from hermes.control.event_hub import EventHub
from hermes.control.live_relay import LiveRelay
from hermes.control.remote_events import LiveEvents
from hermes.state.turns import EVENTS_PER_CLAIM
from hermes.testing.running import until
from hermes.types.events import TextDelta
from hermes.types.identity import OwnerId, TurnId

TURN = TurnId("t")


class MemoryBus:
    """The bus of one node. `nodes` maps the name of each node of the test to its bus."""

    def __init__(self, name: str, nodes: "dict[str, MemoryBus]") -> None:
        self.texts: list[str] = []
        """The messages that have reached this node. While `losing` is set, messages are lost."""
        self.losing = False
        self._name = name
        self._nodes = nodes
        self._taken = 0
        nodes[name] = self

    async def send(self, texts: Sequence[str], to: OwnerId | None = None) -> None:
        for name, node in self._nodes.items():
            if name != self._name and to in (None, name) and not node.losing:
                node.texts += texts

    async def received(self) -> AsyncIterator[str]:
        while True:
            await until(lambda: len(self.texts) > self._taken, within=60)
            self._taken += 1
            yield self.texts[self._taken - 1]

    async def announce(self, commit: int) -> None:
        raise AssertionError("the relay commits nothing")

    def announced(self) -> AsyncIterator[int | None]:
        raise AssertionError("the relay reads no announcements")


class Node:
    def __init__(self, name: str, nodes: dict[str, MemoryBus]) -> None:
        self.hub = EventHub()
        self.bus = MemoryBus(name, nodes)
        self.relay = LiveRelay(self.bus, OwnerId(name), self.hub)


@asynccontextmanager
async def two_nodes() -> AsyncIterator[tuple[Node, Node]]:
    shared: dict[str, MemoryBus] = {}
    nodes = Node("one", shared), Node("two", shared)
    async with anyio.create_task_group() as group:
        for node in nodes:
            group.start_soon(node.relay.run)
        yield nodes
        group.cancel_scope.cancel()


def text_at(node: Node, after: int = EVENTS_PER_CLAIM) -> str:
    log = node.hub.get(TURN)
    found = log.remote.read(after) if log and log.remote else []
    return "".join(event.text for _, event in found if isinstance(event, TextDelta))


async def test_without_readers_on_other_nodes_nothing_is_sent() -> None:
    async with two_nodes() as (one, two):
        log = one.hub.begin(TURN, 1)
        with one.hub.following(TURN):
            log.emit(TextDelta(text="word"))
            await anyio.sleep(2 * live_relay.LIVE_BATCH_SECONDS)
        assert one.bus.texts == two.bus.texts == []


async def test_a_node_with_readers_gets_the_unstored_events_and_then_new_events() -> None:
    async with two_nodes() as (one, two):
        log = one.hub.begin(TURN, 1)
        log.emit(TextDelta(text="stored "))
        log.keep(log.seq)
        log.emit(TextDelta(text="new "))
        with two.hub.following(TURN):
            two.relay.notice_reader()
            await until(lambda: text_at(two) == "new ")
            assert log.readers == 1
            log.emit(TextDelta(text="newer"))
            await until(lambda: text_at(two) == "new newer")


async def test_events_that_were_lost_are_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_relay, "RENEW_SECONDS", 0.05)
    async with two_nodes() as (one, two):
        log = one.hub.begin(TURN, 1)
        log.emit(TextDelta(text="a"))
        with two.hub.following(TURN):
            two.relay.notice_reader()
            await until(lambda: text_at(two) == "a")
            two.bus.losing = True
            log.emit(TextDelta(text="b"))
            (reader,) = one.relay._remote.values()
            await until(lambda: reader.sent == log.seq)
            two.bus.losing = False
            await until(lambda: text_at(two) == "ab")


async def test_nothing_is_sent_to_a_node_whose_readers_have_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live_relay, "FORGET_READER_SECONDS", 0.0)
    unread: list[TurnId] = []
    async with two_nodes() as (one, two):
        one.hub.on_unread = unread.append
        log = one.hub.begin(TURN, 1)
        with two.hub.following(TURN):
            two.relay.notice_reader()
            await until(lambda: log.readers)
        await until(lambda: not log.readers)
    assert unread


async def test_readers_are_told_when_the_other_node_no_longer_runs_the_turn() -> None:
    async with two_nodes() as (one, two):
        log = one.hub.begin(TURN, 1)
        log.emit(TextDelta(text="a"))
        with two.hub.following(TURN) as followed:
            two.relay.notice_reader()
            await until(lambda: text_at(two) == "a")
            one.hub.end(log)
            await until(lambda: followed.remote is not None and followed.remote.looks)
        assert one.hub.get(TURN) is None


async def test_the_events_of_a_resumed_turn_are_sent() -> None:
    async with two_nodes() as (one, two):
        log = one.hub.begin(TURN, 1)
        log.emit(TextDelta(text="before"))
        with two.hub.following(TURN):
            two.relay.notice_reader()
            await until(lambda: text_at(two) == "before")
            log.begin(2)
            log.emit(TextDelta(text="after"))
            await until(lambda: text_at(two, 2 * EVENTS_PER_CLAIM) == "after")


async def test_messages_of_other_versions_are_ignored() -> None:
    async with two_nodes() as (one, two):
        log = one.hub.begin(TURN, 1)
        log.emit(TextDelta(text="a"))
        two.bus.texts.append('{"type":"Unknown"}')
        two.relay._add(LiveEvents(turn=TurnId("nobody reads it"), kept=0, first=1))
        with two.hub.following(TURN):
            two.relay.notice_reader()
            await until(lambda: text_at(two) == "a")
