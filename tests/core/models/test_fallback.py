"""If a model fails, its fallbacks are called. Turns are answered even if a server fails half of the
time."""

import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import anyio.lowlevel
import msgspec
import pytest
from msgspec.structs import replace

from hermes.core.models.fallback import FAILURE_SECONDS, Fallback
from hermes.core.models.retry import Retrying
from hermes.testing.model import FakeModel, Reply
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import running, until
from hermes.testing.scripted import (
    Answer,
    ChatRequest,
    Plan,
    ScriptedModel,
    fails,
    is_complete,
    says,
)
from hermes.testing.tools import TEST_TOOLS
from hermes.testing.upstream import model_client
from hermes.types.errors import (
    AuthFailed,
    Disconnected,
    HermesError,
    RateLimited,
    Rejected,
    TooLong,
)
from hermes.types.events import AgentEvent, Notice, SegmentDiscarded, SegmentEnded, TextDelta
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

FIRST = ModelChoice(provider="one", model="big", base_url="http://one")
SECOND = ModelChoice(provider="two", model="small", base_url="http://two")
THIRD = ModelChoice(provider="three", model="tiny", base_url="http://three", tools=False)


def request(choice: ModelChoice = FIRST, text: str = "hi") -> ModelRequest:
    return ModelRequest(
        choice=choice, system="", messages=[UserMessage(text=text)], step="t_1", tools=TEST_TOOLS
    )


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def falling_back(
    *answers: Answer, chain: Sequence[ModelChoice] = (SECOND, THIRD), clock: Clock | None = None
) -> tuple[Fallback, ScriptedModel]:
    model = ScriptedModel(answers)
    return Fallback(model, lambda _choice: chain, clock=clock or Clock()), model


def asked(model: ScriptedModel) -> list[str]:
    return [one.choice.provider for one in model.requests]


@pytest.mark.parametrize(
    "error", [RateLimited("slow down", 600.0), Disconnected("cut"), AuthFailed("wrong key")]
)
async def test_the_next_model_is_called_and_the_person_gets_a_notice(error: HermesError) -> None:
    events: list[AgentEvent] = []
    fallback, model = falling_back(fails(error), says("hello"))
    answer = await fallback.complete(request(), events.append)
    assert answer.text == "hello"
    assert asked(model) == ["one", "two"]
    assert events[0] == Notice(text=f"{error}. Calling small of two instead.")


async def test_text_of_a_failed_model_is_discarded_before_the_next_call() -> None:
    events: list[AgentEvent] = []
    fallback, _ = falling_back(fails(Disconnected("cut"), after="hel"), says("hello"))
    await fallback.complete(request(), events.append)
    assert events == [
        TextDelta(text="hel"),
        SegmentDiscarded(from_seq=0),
        Notice(text="cut. Calling small of two instead."),
        TextDelta(text="hello"),
        SegmentEnded(),
    ]


async def test_text_that_a_retry_discarded_is_not_discarded_again() -> None:
    events: list[AgentEvent] = []
    cut, gone = fails(Disconnected("cut"), after="hel"), fails(Disconnected("gone"))
    model = ScriptedModel([cut, gone, says("hello")])

    async def sleep(_seconds: float) -> None:
        await anyio.lowlevel.checkpoint()

    retrying = Retrying(model, attempts=2, sleep=sleep)
    await Fallback(retrying, lambda _choice: [SECOND]).complete(request(), events.append)
    assert events.count(SegmentDiscarded(from_seq=0)) == 1


@pytest.mark.parametrize("error", [Rejected("no such model"), TooLong("too long")])
async def test_an_invalid_request_is_not_sent_to_another_model(error: HermesError) -> None:
    fallback, model = falling_back(fails(error))
    with pytest.raises(type(error)):
        await fallback.complete(request(), list[AgentEvent]().append)
    assert asked(model) == ["one"]


async def test_if_all_models_fail_the_error_of_the_first_model_names_the_others() -> None:
    limit, cut, key = RateLimited("slow down", 600.0), Disconnected("cut"), AuthFailed("wrong key")
    fallback, _ = falling_back(fails(limit), fails(cut), fails(key))
    with pytest.raises(RateLimited) as raised:
        await fallback.complete(request(), list[AgentEvent]().append)
    expected = "slow down (also tried: small of two: cut; tiny of three: wrong key)"
    assert str(raised.value) == expected
    assert raised.value.retry_after == 600.0


async def test_without_other_models_the_error_is_not_changed() -> None:
    error = Disconnected("cut")
    fallback, _ = falling_back(fails(error), chain=())
    with pytest.raises(Disconnected) as raised:
        await fallback.complete(request(), list[AgentEvent]().append)
    assert raised.value is error


async def test_a_model_without_tool_support_gets_no_tools() -> None:
    fallback, model = falling_back(fails(Disconnected("cut")), says("hello"), chain=[THIRD])
    await fallback.complete(request(), list[AgentEvent]().append)
    assert [bool(one.tools) for one in model.requests] == [True, False]


async def test_a_model_that_failed_is_called_last_for_a_while() -> None:
    clock, events = Clock(), list[AgentEvent]()
    answers = [fails(Disconnected("cut")), says("a"), says("b"), says("c")]
    fallback, model = falling_back(*answers, clock=clock)
    await fallback.complete(request(), events.append)
    clock.now += FAILURE_SECONDS - 1
    await fallback.complete(request(), events.append)
    clock.now += 2
    await fallback.complete(request(), events.append)
    assert asked(model) == ["one", "two", "two", "one"]
    assert len([event for event in events if isinstance(event, Notice)]) == 1


async def test_a_long_pause_is_remembered_until_it_is_over() -> None:
    clock = Clock()
    answers = [fails(RateLimited("slow down", 600.0)), says("a"), says("b")]
    fallback, model = falling_back(*answers, clock=clock)
    await fallback.complete(request(), list[AgentEvent]().append)
    clock.now += 500
    await fallback.complete(request(), list[AgentEvent]().append)
    assert asked(model) == ["one", "two", "two"]


async def test_if_all_models_failed_recently_all_are_tried_in_order() -> None:
    cut = fails(Disconnected("cut"))
    fallback, model = falling_back(cut, cut, cut, says("a"), says("b"))
    with pytest.raises(Disconnected):
        await fallback.complete(request(), list[AgentEvent]().append)
    await fallback.complete(request(), list[AgentEvent]().append)
    await fallback.complete(request(), list[AgentEvent]().append)
    assert asked(model) == ["one", "two", "three", "one", "one"]


SPEED = 50.0
"""Factor by which the clock of these tests is faster than real time."""
SEED = 8


def fast_clock() -> float:
    return time.monotonic() * SPEED


async def fast_sleep(seconds: float) -> None:
    await anyio.sleep(seconds / SPEED)


class HalfFailing(FakeModel):
    """A model server on which each of the first `failing` calls fails with a probability of one
    half, with the errors of real servers."""

    def __init__(self, failing: int) -> None:
        super().__init__()
        self.early: list[float] = []
        """One item for each call that came too early, because the client already knew about a
        pause: the rest of this pause, in seconds."""
        self.pauses: dict[float, float] = {}
        """Maps the length of each pause in seconds to the time at which the pause is over. Each
        pause has a different length, so the length identifies the pause."""
        self._told: list[tuple[float, float]] = []
        self._failing = failing
        self._chance = random.Random(SEED)

    def heard(self, seconds: float) -> None:
        """Records that the client has read the error that asks for this pause."""
        self._told.append((fast_clock(), self.pauses[seconds]))

    def reply(self, method: bytes, path: bytes, key: str, body: bytes) -> Reply:
        now, asking = fast_clock(), msgspec.json.decode(body, type=ChatRequest)
        begun = float(asking.messages[0].text)
        self.early += [over - now for heard, over in self._told if heard <= begun and now < over]
        if self.stats.calls < self._failing and self._chance.random() < 0.5:
            plan = self._chance.choice(PLANS)
            if plan.retry_after is not None:
                seconds = plan.retry_after + len(self.pauses) / 1000
                self.pauses[seconds] = now + seconds
                plan = replace(plan, retry_after=seconds)
            self.script.append(plan)
        return super().reply(method, path, key, body)


PLANS = (
    Plan(status=429, retry_after=5.0),
    Plan(status=429, retry_after=4.0),
    Plan(status=429),
    Plan(status=503, retry_after=6.0),
    Plan(status=500),
    Plan(status=529),
    Plan(cut=0),
    Plan(cut=3),
)


class Witness:
    """Passes model calls on to the client. Adds the start time to each call. When the client has
    read an error that asks for a pause, calls `heard` of the fake server."""

    def __init__(self, provider: ModelProvider, server: HalfFailing) -> None:
        self._provider = provider
        self._server = server

    async def complete(self, one: ModelRequest, emit: Emit) -> AssistantMessage:
        try:
            return await self._provider.complete(replace(one, system=str(fast_clock())), emit)
        except RateLimited as error:
            if error.retry_after is not None:
                self._server.heard(error.retry_after)
            raise


@asynccontextmanager
async def over_http(
    server: HalfFailing, chain: Sequence[ModelChoice] = ()
) -> AsyncIterator[ModelProvider]:
    async with aiohttp.ClientSession() as session:
        witness = Witness(model_client(session), server)
        retrying = Retrying(witness, sleep=fast_sleep, clock=fast_clock)
        yield Fallback(retrying, lambda _choice: chain, clock=fast_clock)


class Turns:
    """Makes model calls, and collects the answer or the error of each call, and all notices."""

    def __init__(self, provider: ModelProvider) -> None:
        self._provider = provider
        self.answers: list[str] = []
        self.explained: list[str] = []
        self.notices: list[str] = []

    async def ask(self, one: ModelRequest) -> None:
        seen: list[str] = []

        def see(event: AgentEvent) -> None:
            match event:
                case TextDelta(text=text):
                    seen.append(text)
                case SegmentDiscarded():
                    seen.clear()
                case Notice(text=text):
                    self.notices.append(text)

        try:
            answer = await self._provider.complete(one, see)
        except HermesError as error:
            self.explained.append(str(error))
        else:
            assert "".join(seen) == answer.text, "the emitted text is not the answer"
            self.answers.append(answer.text)


async def in_waves(turns: Turns, choice: ModelChoice, count: int, wave: int = 25) -> None:
    for first in range(0, count, wave):
        async with anyio.create_task_group() as group:
            for number in range(first, first + wave):
                group.start_soon(turns.ask, request(choice, f"turn {number}"))


async def test_most_turns_succeed_on_a_server_that_fails_half_of_the_time() -> None:
    async with HalfFailing(failing=250) as server, over_http(server) as provider:
        turns = Turns(provider)
        choice = replace(FIRST, base_url=server.base_url)
        with anyio.fail_after(15):
            await in_waves(turns, choice, 200)
    assert len(turns.answers) + len(turns.explained) == 200
    assert len(turns.answers) > 150
    assert all(map(is_complete, turns.answers))
    assert all(text.startswith("one ") for text in turns.explained)
    assert len(server.pauses) > 5
    assert server.early == []


async def test_with_a_second_server_every_turn_is_answered() -> None:
    async with HalfFailing(failing=10_000) as first, FakeModel() as second:
        backup = replace(SECOND, base_url=second.base_url)
        async with over_http(first, [backup]) as provider:
            turns = Turns(provider)
            with anyio.fail_after(15):
                await in_waves(turns, replace(FIRST, base_url=first.base_url), 200)
    assert len(turns.answers) == 200
    assert all(map(is_complete, turns.answers))
    assert second.stats.answered > 0
    told = [text for text in turns.notices if "pause" not in text and "trying again" not in text]
    assert told
    assert all("Calling small of two instead" in text for text in told)
    assert first.early == []


async def test_every_message_to_a_gateway_is_answered_or_explained(tmp_path: Path) -> None:
    chats = [str(number) for number in range(40)]
    server = ChatServer()

    class Served:
        """The model of the gateway. It passes every call on to the failing server."""

        async def complete(self, one: ModelRequest, emit: Emit) -> AssistantMessage:
            choice = replace(one.choice, base_url=failing.base_url)
            return await provider.complete(replace(one, choice=choice), emit)

    async with HalfFailing(failing=150) as failing, over_http(failing) as provider:
        async with running(tmp_path, [PlainAdapter(server)], Served()):
            for number in (1, 2, 3):
                for chat in chats:
                    server.says(f"message {number}", chat)
                await until(lambda: len(server.messages) == number * len(chats), 10)  # noqa: B023
    texts = [text for chat in chats for text in server.texts(chat)]
    unanswered = [text for text in texts if not is_complete(text)]
    assert [text for text in unanswered if not text.startswith("custom ")] == []
    assert len(unanswered) < len(texts) // 2
    assert len(failing.pauses) > 5
    assert failing.early == []
