"""A reader gets the events of a turn in any process, live or from the store, beginning after any
event."""

import time
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import pytest
from msgspec.structs import replace

from hermes.control.event_hub import EventHub
from hermes.control.event_pages import EventPages
from hermes.control.following import following
from hermes.control.gateway import Gateway
from hermes.state.codec import TEXT_PIECE
from hermes.state.turns import EVENTS_PER_CLAIM
from hermes.testing.running import (
    QUIET,
    Conditions,
    WrappedStore,
    held,
    running,
    transaction_name,
    until,
)
from hermes.testing.scripted import Answer, ScriptedModel, calls, hangs, says
from hermes.types.events import AgentEvent, Envelope, QuestionAsked, TextDelta, TurnFinished
from hermes.types.identity import OWNER, Principal, Source, TurnId, new_id
from hermes.types.messages import (
    Accepted,
    Asked,
    AssistantMessage,
    MessageEvent,
    Origin,
    UserMessage,
)
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit
from hermes.types.store import Work

T = TypeVar("T")
P = ParamSpec("P")

QUESTION = calls(("ask", {"question": "Which?"}), text="Let me ask.")


def speaks(*words: str) -> Answer:
    """Returns an answer that emits each of these words as a separate event."""

    async def answer(_request: ModelRequest, emit: Emit) -> AssistantMessage:
        for word in words:
            emit(TextDelta(text=word))
        return AssistantMessage(text="".join(words))

    return answer


async def asked(gateway: Gateway, text: str = "hi", *, stateless: bool = False) -> Accepted:
    """Sends the message to the gateway as an API request, because only events of API requests are
    stored."""
    receipt = await gateway.accept(
        MessageEvent(
            dedupe_key=new_id(),
            source=Source(
                platform="api", account="api", chat_kind="private", chat_id="s", user_id="k"
            ),
            origin=Origin(trigger="api", principal=Principal(name="api", person=OWNER)),
            received_at=time.time(),
            body=Asked(messages=(UserMessage(text=text),), stateless=stateless, detached=True),
        )
    )
    assert isinstance(receipt, Accepted)
    return receipt


async def turn_of(gateway: Gateway, text: str = "hi") -> TurnId:
    receipt = await asked(gateway, text)
    assert receipt.turn is not None
    return TurnId(receipt.turn)


async def all_of(gateway: Gateway, turn: TurnId, after: int = 0) -> list[Envelope]:
    with anyio.fail_after(10):
        async with aclosing(gateway.follow(turn, after)) as envelopes:
            return [envelope async for envelope in envelopes]


def said(envelopes: Sequence[Envelope]) -> str:
    return "".join(one.event.text for one in envelopes if isinstance(one.event, TextDelta))


def last(envelopes: Sequence[Envelope]) -> AgentEvent:
    return envelopes[-1].event


async def test_a_turn_is_followed_live_up_to_its_end(tmp_path: Path) -> None:
    event = anyio.Event()
    async with running(tmp_path, [], ScriptedModel([held(event, says("done"), "so: ")])) as gateway:
        turn = await turn_of(gateway)
        with gateway.following(turn) as following:
            before = following.begun
            first = await following.next()
            assert (before, following.begun) == (False, True)
            assert said(first) == "so: "
            assert [following.ended] == [False]
            event.set()
            rest = await following.rest()
    assert last(rest) == TurnFinished(outcome="completed")
    assert following.ended
    numbers = [one.seq for one in (*first, *rest)]
    assert numbers == sorted(set(numbers))
    assert {one.turn for one in (*first, *rest)} == {turn}


async def test_a_turn_that_is_over_can_be_replayed_from_any_event_on(tmp_path: Path) -> None:
    model = ScriptedModel([calls(("slow", {"seconds": 0})), speaks("one ", "two ", "three")])
    async with running(tmp_path, [], model) as gateway:
        turn = await turn_of(gateway)
        live = await all_of(gateway, turn)
        await until(lambda: not gateway.busy)
        replayed = await all_of(gateway, turn)
        assert said(replayed) == said(live) == "one two three"
        assert last(replayed) == last(live)
        for position, envelope in enumerate(replayed, 1):
            assert await all_of(gateway, turn, envelope.seq) == replayed[position:]
        with gateway.following(turn, replayed[-2].seq) as following:
            assert await following.earlier(0, replayed[-2].seq) == replayed[:-1]
            assert await following.earlier(replayed[-2].seq, replayed[-2].seq) == []


async def test_the_store_is_not_read_for_a_turn_that_was_just_accepted(
    tmp_path: Path,
) -> None:
    names: list[str] = []

    class Overheard(WrappedStore):
        async def read(
            self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs
        ) -> T:
            names.append(transaction_name(transaction))
            return await self.inner.read(transaction, *args, **kwargs)

    conditions = replace(QUIET, wrap_store=Overheard)
    async with running(tmp_path, [], ScriptedModel([says("done")]), conditions) as gateway:
        turn = await turn_of(gateway)
        assert said(await all_of(gateway, turn)) == "done"
        assert "_page" not in names
        await all_of(gateway, turn)
        assert "_page" in names


async def test_a_reader_gets_the_events_from_before_and_after_a_resumption_of_the_turn(
    tmp_path: Path,
) -> None:
    event = anyio.Event()
    model = ScriptedModel([QUESTION, held(event, says("Blue it is."))])
    async with running(tmp_path, [], model) as gateway:
        turn = await turn_of(gateway)
        first = await all_of(gateway, turn)
        assert last(first) == TurnFinished(outcome="suspended")
        answered = await asked(gateway, "blue")
        assert answered.turn == turn
        with gateway.following(turn) as reader:
            found = list(await reader.next())
            assert [one.event for one in found[: len(first)]] == [one.event for one in first]
            assert not reader.ended
            event.set()
            with anyio.fail_after(5):
                found += await reader.rest()
    assert said(found).endswith("Blue it is.")
    assert last(found) == TurnFinished(outcome="completed")
    assert any(isinstance(one.event, QuestionAsked) for one in found)


async def test_a_reader_of_the_suspended_turn_does_not_stop_the_reader_of_the_resumed_turn(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, [], ScriptedModel([QUESTION, says("Blue it is.")])) as gateway:
        turn = await turn_of(gateway)
        with gateway.following(turn) as old:
            assert last(await old.rest()) == TurnFinished(outcome="suspended")
            receipt = await asked(gateway, "blue")
            assert receipt.after == 2 * EVENTS_PER_CLAIM
            found = await all_of(gateway, turn, receipt.after)
    assert said(found) == "Blue it is."


LONG = "".join(f"{number:7}," for number in range(50_000))


def in_words(text: str, size: int) -> Answer:
    return speaks(*(text[start : start + size] for start in range(0, len(text), size)))


@pytest.mark.parametrize("size", [100, 5_000, len(LONG)], ids=["words", "parts", "one piece"])
async def test_a_long_text_comes_in_pages_live_and_replayed(tmp_path: Path, size: int) -> None:
    model = ScriptedModel([in_words(LONG, size)])
    async with running(tmp_path, [], model) as gateway:
        turn = await turn_of(gateway)
        pages: list[Sequence[Envelope]] = []
        with gateway.following(turn) as following:
            while not following.ended:
                pages.append(await following.next())
        await until(lambda: not gateway.busy)
        replayed = await all_of(gateway, turn)
        with gateway.following(turn) as following:
            while not following.ended:
                pages.append(await following.next())
            numbers = [one.seq for one in replayed]
            found: list[Envelope] = []
            while page := await following.earlier(found[-1].seq if found else 0, numbers[-2]):
                found += page
        middle = await all_of(gateway, turn, numbers[len(numbers) // 2])
    assert said(replayed) == LONG
    assert found == replayed[:-1]
    assert middle == replayed[len(numbers) // 2 + 1 :]
    assert sum(len(said(page)) for page in pages) == 2 * len(LONG)
    assert max(len(said(page)) for page in pages) <= 2 * TEXT_PIECE


async def test_a_long_text_leaves_the_memory_when_its_turn_is_over(tmp_path: Path) -> None:
    event = anyio.Event()
    model = ScriptedModel([held(event, in_words(LONG, 1000))])
    async with running(tmp_path, [], model) as gateway:
        turn = await turn_of(gateway)
        with gateway.following(turn) as quick, gateway.following(turn) as slow:
            event.set()
            first = await slow.next()
            assert said(await quick.rest()) == LONG
            await until(lambda: not gateway.busy)
            assert slow._log._events == []
            rest = await slow.rest()
    assert said([*first, *rest]) == LONG
    assert last(rest) == TurnFinished(outcome="completed")


async def test_a_page_that_ends_where_the_turn_was_suspended_is_not_the_last_page(
    tmp_path: Path,
) -> None:
    blue = LONG[:40_000]
    async with running(tmp_path, [], ScriptedModel([QUESTION, in_words(blue, 1000)])) as gateway:
        turn = await turn_of(gateway)
        await all_of(gateway, turn)
        await asked(gateway, "blue")
        await until(lambda: not gateway.busy)
        with gateway.following(turn) as following:
            pages = []
            while not following.ended:
                pages.append(await following.next())
    found = [one for page in pages for one in page]
    assert said(found).endswith(blue)
    assert len(pages) > 1
    ends = [one.event.outcome for one in found if isinstance(one.event, TurnFinished)]
    assert ends == ["suspended", "completed"]


@pytest.mark.parametrize("within", [0.05, 60.0])
async def test_a_turn_that_another_process_runs_is_read_from_the_store(
    tmp_path: Path, within: float
) -> None:
    event = anyio.Event()
    model = ScriptedModel([held(event, says("done"))])
    async with running(tmp_path, [], model) as gateway:
        turn = await turn_of(gateway)
        await until(lambda: model.requests)
        async with running(tmp_path, [], ScriptedModel([])) as other:
            with other.following(turn) as following:
                assert await following.next(0.01) == ()
                assert [following.ended] == [False]
                event.set()
                found: list[Envelope] = []
                with anyio.fail_after(5):
                    while not following.ended:
                        found += await following.next(within)
                assert not following.begun
    assert said(found) == "done"


async def test_a_turn_that_is_left_to_the_next_process_ends_without_a_result(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([hangs()])
    async with running(tmp_path, [], model) as gateway:
        turn = await turn_of(gateway)
        with gateway.following(turn) as following:
            await until(lambda: model.requests)
            await gateway.drain(0)
            with anyio.fail_after(5):
                found = await following.rest()
    assert following.ended
    assert not any(isinstance(one.event, TurnFinished) for one in found)


async def test_gather_waits_for_the_given_time_or_until_the_turn_ends(
    tmp_path: Path,
) -> None:
    event = anyio.Event()
    async with running(tmp_path, [], ScriptedModel([held(event, says("done"), "so: ")])) as gateway:
        turn = await turn_of(gateway)
        with gateway.following(turn) as following:
            await following.next()
            begun = time.monotonic()
            await following.gather(0.1)
            assert time.monotonic() - begun >= 0.09
            event.set()
            with anyio.fail_after(5):
                await following.gather(60)
            assert last(await following.next()) == TurnFinished(outcome="completed")


async def test_a_reader_of_the_whole_answer_is_not_woken_for_each_word(tmp_path: Path) -> None:
    event = anyio.Event()
    model = ScriptedModel([held(event, speaks("a", "b", "c"), "so: ")])
    async with running(tmp_path, [], model) as gateway:
        turn = await turn_of(gateway)
        with gateway.following(turn) as following:
            await until(lambda: following.begun)
            async with anyio.create_task_group() as group:
                group.start_soon(following.rest)
                log = following._log
                await until(lambda: log._enders)
                assert not log._waiters
                event.set()


async def test_a_reader_of_the_whole_answer_is_not_woken_when_the_turn_begins(
    tmp_path: Path,
) -> None:
    hub, turn, found = EventHub(), TurnId(new_id()), list[Envelope]()
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        pages = EventPages(gateway._store)
        with following(hub, pages, turn, 0, expected=True) as reader:

            async def read() -> None:
                found.extend(await reader.rest())

            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await until(lambda: reader._log._enders)
                log = hub.begin(turn, 1)
                log.emit(TextDelta(text="done"))
                assert not log._waiters
                log.end([TurnFinished(outcome="completed")])
    assert said(found) == "done"
    assert last(found) == TurnFinished(outcome="completed")


@pytest.mark.parametrize("terminal", [True, False])
async def test_a_stop_can_be_requested_for_any_turn(tmp_path: Path, terminal: bool) -> None:
    conditions = Conditions(terminal=terminal)
    async with running(tmp_path, [], ScriptedModel([hangs()]), conditions) as gateway:
        turn = await turn_of(gateway)
        with gateway.following(turn) as following:
            await gateway.request_stop(turn, "test")
            with anyio.fail_after(5):
                found = await following.rest()
    assert last(found) == TurnFinished(outcome="stopped", text="by you")
