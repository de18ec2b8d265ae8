"""Live events are numbered and can have many readers. The logs of finished turns are removed from
memory."""

import time
from pathlib import Path

import anyio
from msgspec.structs import replace

from hermes.control.event_hub import (
    HELD_CHARACTERS,
    READ_EVENTS,
    READ_JOINED,
    EventHub,
    EventLog,
)
from hermes.state.codec import TEXT_PIECE
from hermes.state.turns import EVENTS_PER_CLAIM
from hermes.testing.running import held, rows, running, until
from hermes.testing.scripted import ScriptedModel, hangs, says
from hermes.types.events import (
    AgentEvent,
    ReasoningDelta,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    TurnFinished,
)
from hermes.types.identity import OWNER, Principal, Source, TurnId
from hermes.types.messages import Accepted, Asked, MessageEvent, Origin, UserMessage

TURN = TurnId("t")


def log(epoch: int = 1) -> EventLog:
    made = EventLog(TURN)
    made.begin(epoch)
    return made


def test_events_are_numbered_within_their_claim() -> None:
    live = log(epoch=3)
    assert live.seq == 3 * EVENTS_PER_CLAIM
    live.emit(TextDelta(text="a"))
    live.emit(SegmentEnded())
    assert live.read(0) == [
        (3 * EVENTS_PER_CLAIM + 1, TextDelta(text="a")),
        (3 * EVENTS_PER_CLAIM + 2, SegmentEnded()),
    ]
    assert live.read(3 * EVENTS_PER_CLAIM + 2) == []
    assert live.read(EVENTS_PER_CLAIM + 7) == live.read(0)


def test_consecutive_texts_are_joined_under_the_number_of_the_last_text() -> None:
    live = log()
    for event in (
        TextDelta(text="a"),
        TextDelta(text="b"),
        ReasoningDelta(text="x"),
        ReasoningDelta(text="y"),
        TextDelta(text="c"),
    ):
        live.emit(event)
    assert live.read(0) == [
        (EVENTS_PER_CLAIM + 2, TextDelta(text="ab")),
        (EVENTS_PER_CLAIM + 4, ReasoningDelta(text="xy")),
        (EVENTS_PER_CLAIM + 5, TextDelta(text="c")),
    ]
    assert live.read(EVENTS_PER_CLAIM + 1)[0] == (EVENTS_PER_CLAIM + 2, TextDelta(text="b"))


def test_a_read_returns_a_part_of_a_long_text_and_the_next_read_continues() -> None:
    live = log()
    for number in range(3 * READ_EVENTS):
        live.emit(TextDelta(text=f"{number},"))
    for _ in range(3 * READ_JOINED):
        live.emit(SegmentEnded())
    live.emit(ReasoningDelta(text="x" * (3 * TEXT_PIECE + 1)))
    found, reads = list[tuple[int, AgentEvent]](), list[int]()
    while part := live.read(found[-1][0] if found else 0):
        found += part
        reads.append(len(part))
    said = "".join(event.text for _, event in found if isinstance(event, TextDelta))
    assert said == "".join(f"{number}," for number in range(3 * READ_EVENTS))
    thought = [event.text for _, event in found if isinstance(event, ReasoningDelta)]
    assert [len(text) for text in thought] == [TEXT_PIECE] * 3 + [1]
    assert found[-1][0] == live.seq
    assert sum(isinstance(event, SegmentEnded) for _, event in found) == 3 * READ_JOINED
    assert max(reads) <= READ_JOINED + 1
    whole = [pair for pair in found if pair[0] <= EVENTS_PER_CLAIM + 5 * READ_EVENTS]
    again: list[tuple[int, AgentEvent]] = []
    while part := live.read(again[-1][0] if again else 0, whole[-1][0]):
        again += part
    assert again == whole


def test_only_logs_with_little_text_stay_in_memory() -> None:
    for size, released in ((HELD_CHARACTERS, False), (HELD_CHARACTERS + 1, True)):
        live = log()
        live.emit(TextDelta(text="x" * size))
        live.end([TurnFinished(outcome="completed")])
        last, version = live.seq, live.version
        live.release()
        assert live.covers(0) is not released
        assert (live.version != version) is released
        assert live.seq == last
        assert bool(live.read(0)) is not released


def test_a_discard_names_the_first_event_of_the_open_segment() -> None:
    live = log()
    live.emit(TextDelta(text="kept"))
    live.emit(SegmentEnded())
    live.emit(TextDelta(text="lost"))
    assert live.open_text() == "lost"
    live.emit(SegmentDiscarded(from_seq=0))
    assert live.read(EVENTS_PER_CLAIM + 3) == [
        (EVENTS_PER_CLAIM + 4, SegmentDiscarded(from_seq=EVENTS_PER_CLAIM + 3))
    ]
    assert live.open_text() == ""
    live.emit(SegmentDiscarded(from_seq=5))
    assert live.read(EVENTS_PER_CLAIM + 4) == [(EVENTS_PER_CLAIM + 5, SegmentDiscarded(from_seq=5))]


def test_a_checkpoint_keeps_every_event_once() -> None:
    live = log()
    live.emit(TextDelta(text="a"))
    live.emit(TextDelta(text="b"))
    first, recorded = live.unkept()
    assert (first, [one.seq for one in recorded]) == (EVENTS_PER_CLAIM + 1, [EVENTS_PER_CLAIM + 2])
    live.keep(live.seq)
    live.emit(SegmentEnded())
    first, recorded = live.unkept([TurnFinished(outcome="completed")])
    assert (first, [one.seq for one in recorded]) == (
        EVENTS_PER_CLAIM + 3,
        [EVENTS_PER_CLAIM + 3, EVENTS_PER_CLAIM + 4],
    )


def test_only_the_log_of_the_first_claim_covers_all_events_of_the_turn() -> None:
    assert not EventLog(TURN).covers(0)
    assert not EventLog(TURN).covers(EVENTS_PER_CLAIM)
    assert log(epoch=1).covers(0)
    assert not log(epoch=3).covers(0)
    assert not log(epoch=3).covers(3 * EVENTS_PER_CLAIM - 1)
    assert log(epoch=3).covers(3 * EVENTS_PER_CLAIM)


async def test_a_reader_is_woken_by_the_next_event_and_by_the_end() -> None:
    hub = EventHub()
    seen: list[object] = []

    async def read() -> None:
        with hub.following(TURN) as live:
            seq = 0
            while not live.finished:
                await live.changed()
                for seq, event in live.read(seq):  # noqa: B007, B020
                    seen.append(event)

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await until(lambda: hub.get(TURN))
        live = hub.begin(TURN, 1)
        live.emit(TextDelta(text="a"))
        await until(lambda: seen)
        live.end([TurnFinished(outcome="completed")])
        hub.end(live)
    assert seen == [TextDelta(text="a"), TurnFinished(outcome="completed")]
    assert hub.get(TURN) is None


async def test_no_log_stays_in_memory_after_its_turn() -> None:
    hub = EventHub()
    with hub.following(TURN):
        pass
    assert hub.get(TURN) is None
    live = hub.begin(TURN, 1)
    with hub.following(TURN):
        pass
    assert hub.get(TURN) is live
    with hub.following(TURN):
        hub.end(live)
        assert hub.get(TURN) is live
    assert hub.get(TURN) is None


async def test_the_last_reader_that_leaves_before_the_end_is_noticed() -> None:
    hub = EventHub()
    gone: list[TurnId] = []
    hub.on_unread = gone.append
    with hub.following(TURN):
        pass
    live = hub.begin(TURN, 1)
    with hub.following(TURN):
        with hub.following(TURN):
            pass
        assert gone == [TURN]
    assert gone == [TURN, TURN]
    with hub.following(TURN):
        live.end()
    assert gone == [TURN, TURN]


def request(*, detached: bool) -> MessageEvent:
    return MessageEvent(
        dedupe_key=f"api:{detached}",
        source=Source(platform="api", account="api", chat_kind="private", chat_id="", user_id="k"),
        origin=Origin(trigger="api", principal=Principal(name="api", person=OWNER)),
        received_at=time.time(),
        body=Asked(messages=(UserMessage(text="hi"),), detached=detached),
    )


async def test_a_request_that_nobody_reads_is_stopped(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([hangs()])) as gateway:
        gateway._options = replace(gateway._options, unread_seconds=0.05)
        receipt = await gateway.accept(request(detached=False))
        assert isinstance(receipt, Accepted)
        with gateway._hub.following(TurnId(receipt.id)):
            pass
        await until(lambda: not gateway.busy)
        assert await rows(gateway._store, "select state from turns") == [("stopped",)]


async def test_a_detached_request_continues_without_readers(tmp_path: Path) -> None:
    event = anyio.Event()
    async with running(tmp_path, [], ScriptedModel([held(event, says("done"))])) as gateway:
        gateway._options = replace(gateway._options, unread_seconds=0.0)
        receipt = await gateway.accept(request(detached=True))
        assert isinstance(receipt, Accepted)
        with gateway._hub.following(TurnId(receipt.id)):
            pass
        await until(lambda: gateway._hub.get(TurnId(receipt.id)) is not None)
        event.set()
        await until(lambda: not gateway.busy)
        assert await rows(gateway._store, "select state from turns") == [("completed",)]
