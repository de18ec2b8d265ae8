"""A model call that fails for a temporary reason is repeated, with growing pauses."""

import anyio
import anyio.lowlevel
import pytest

from hermes.core.models.retry import Retrying, TrackedEmit
from hermes.testing.scripted import Answer, ScriptedModel, fails, says
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.events import AgentEvent, Notice, SegmentDiscarded, SegmentEnded, TextDelta
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit


class Clock:
    """A clock whose time passes only during `sleep`."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await anyio.lowlevel.checkpoint()


def request(base_url: str = "http://a/v1") -> ModelRequest:
    choice = ModelChoice(provider="fake", model="m", base_url=base_url)
    return ModelRequest(choice=choice, system="", messages=[UserMessage(text="hi")], step="t_1")


def retrying(clock: Clock, *answers: Answer) -> tuple[Retrying, ScriptedModel]:
    model = ScriptedModel(answers)
    return Retrying(model, sleep=clock.sleep, clock=clock, jitter=lambda: 0.0), model


async def test_an_interrupted_call_is_repeated_and_its_text_is_discarded() -> None:
    clock, events = Clock(), list[AgentEvent]()
    retried, _ = retrying(clock, fails(Disconnected("cut"), after="hel"), says("hello"))
    answer = await retried.complete(request(), events.append)
    assert answer.text == "hello"
    assert events == [
        TextDelta(text="hel"),
        SegmentDiscarded(from_seq=0),
        TextDelta(text="hello"),
        SegmentEnded(),
    ]


async def test_nothing_is_discarded_if_no_text_was_emitted() -> None:
    clock, events = Clock(), list[AgentEvent]()
    retried, _ = retrying(clock, fails(Disconnected("cut")), says("hello"))
    await retried.complete(request(), events.append)
    assert events == [TextDelta(text="hello"), SegmentEnded()]


async def test_the_pauses_grow_and_the_last_error_is_raised() -> None:
    clock, events = Clock(), list[AgentEvent]()
    cut = fails(Disconnected("cut"), after="hel")
    retried, model = retrying(clock, cut, cut, cut)
    with pytest.raises(Disconnected, match="cut"):
        await retried.complete(request(), events.append)
    assert len(model.requests) == 3
    assert clock.slept == [0.5, 1.0]
    assert events.count(SegmentDiscarded(from_seq=0)) == 2
    assert events[-1] == TextDelta(text="hel")


@pytest.mark.parametrize("error", [AuthFailed("wrong key"), Rejected("no such model")])
async def test_a_permanent_error_is_not_retried(error: HermesError) -> None:
    retried, model = retrying(Clock(), fails(error))
    with pytest.raises(type(error)):
        await retried.complete(request(), list[AgentEvent]().append)
    assert len(model.requests) == 1


async def test_a_notice_announces_a_long_pause() -> None:
    clock, events = Clock(), list[AgentEvent]()
    retried, _ = retrying(clock, fails(RateLimited("slow down", 12.0)), says("hello"))
    await retried.complete(request(), events.append)
    assert clock.slept == [12.0]
    assert events[0] == Notice(text="the model requests a pause of 12 s")


async def test_a_short_pause_has_no_notice() -> None:
    clock, events = Clock(), list[AgentEvent]()
    retried, _ = retrying(clock, fails(RateLimited("slow down", 2.0)), says("hello"))
    await retried.complete(request(), events.append)
    assert not any(isinstance(event, Notice) for event in events)


async def test_a_rate_limit_without_a_time_is_followed_by_a_short_pause() -> None:
    clock = Clock()
    retried, _ = retrying(clock, fails(RateLimited("slow down")), says("hello"))
    await retried.complete(request(), list[AgentEvent]().append)
    assert clock.slept == [0.5]


async def test_if_a_pause_is_above_the_limit_every_turn_fails_at_once() -> None:
    clock = Clock()
    retried, model = retrying(clock, fails(RateLimited("slow down", 600.0)), says("hello"))
    with pytest.raises(RateLimited, match="slow down"):
        await retried.complete(request(), list[AgentEvent]().append)
    clock.now += 100
    with pytest.raises(RateLimited) as other:
        await retried.complete(request(), list[AgentEvent]().append)
    assert other.value.retry_after == 500.0
    assert clock.slept == []
    assert len(model.requests) == 1


async def test_no_turn_makes_a_call_during_the_pause_of_another_turn() -> None:
    clock = Clock()
    asked: list[float] = []

    def noted(answer: Answer) -> Answer:
        async def note(request: ModelRequest, emit: Emit) -> AssistantMessage:
            asked.append(clock())
            return await answer(request, emit)

        return note

    limited = fails(RateLimited("slow down", 30.0))
    retried, _ = retrying(clock, *map(noted, (limited, says("one"), says("two"))))
    async with anyio.create_task_group() as turns:
        turns.start_soon(retried.complete, request(), list[AgentEvent]().append)
        turns.start_soon(retried.complete, request(), list[AgentEvent]().append)
    assert asked[0] == 100.0
    assert all(moment >= 130.0 for moment in asked[1:])


async def test_a_turn_fails_if_another_turn_extends_the_pause_above_the_limit() -> None:
    clock = Clock()
    leaving = anyio.Event()

    async def late(_request: ModelRequest, _emit: Emit) -> AssistantMessage:
        await leaving.wait()
        raise RateLimited("slow down", 600.0)

    async def sleep(seconds: float) -> None:
        leaving.set()
        await clock.sleep(seconds)

    model = ScriptedModel([late, fails(RateLimited("slow down", 10.0)), says("never said")])
    retried = Retrying(model, sleep=sleep, clock=clock, jitter=lambda: 0.0)
    told: list[str] = []

    async def turn() -> None:
        with pytest.raises(RateLimited) as limited:
            await retried.complete(request(), list[AgentEvent]().append)
        told.append(str(limited.value))

    async with anyio.create_task_group() as turns:
        turns.start_soon(turn)
        turns.start_soon(turn)
    assert sorted(told) == ["fake requests a pause of 600 s: try again after that", "slow down"]
    assert len(model.requests) == 2


async def test_a_pause_does_not_apply_to_another_server() -> None:
    clock = Clock()
    retried, _ = retrying(clock, fails(RateLimited("slow down", 600.0)), says("hello"))
    with pytest.raises(RateLimited):
        await retried.complete(request("http://a/v1"), list[AgentEvent]().append)
    answer = await retried.complete(request("http://b/v1"), list[AgentEvent]().append)
    assert answer.text == "hello"


def test_discarded_text_is_not_discarded_again() -> None:
    events: list[AgentEvent] = []
    tracked = TrackedEmit(events.append)
    tracked(TextDelta(text="hel"))
    tracked(SegmentDiscarded(from_seq=0))
    tracked.discard()
    assert events == [TextDelta(text="hel"), SegmentDiscarded(from_seq=0)]


async def test_the_log_has_one_line_for_each_failed_call(caplog: pytest.LogCaptureFixture) -> None:
    model, _ = retrying(Clock(), fails(Disconnected("cut")), fails(AuthFailed("no such key")))
    with pytest.raises(AuthFailed):
        await model.complete(request(), lambda event: None)
    choice = request().choice
    assert caplog.messages == [
        f"{choice.provider}: a call of {choice.model} failed: {reason}"
        for reason in ("cut", "no such key")
    ]
