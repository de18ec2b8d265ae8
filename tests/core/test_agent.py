"""The loop: steps, tools, suspension, budgets; nothing held between runs."""

import anyio
import msgspec
import pytest

from hermes.core.agent import Agent, run_calls, unanswered
from hermes.core.tools.call import UNKNOWN_OUTCOME, CallRunner
from hermes.core.tools.registry import Registry
from hermes.testing.running import refused
from hermes.testing.scripted import Answer, ScriptedModel, calls, fails, says
from hermes.testing.tools import TEST_TOOLS
from hermes.testing.turns import CHOICE, Notebook, a_turn
from hermes.types.errors import AuthFailed, ClaimLost, HermesError, RateLimited
from hermes.types.events import AgentEvent, SegmentEnded, ToolFinished, UsageReported
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.types.protocols import Emit, ModelRequest
from hermes.types.tools import Tool, ToolContext
from hermes.types.turns import Answered, Completed, Failed, Suspended, Turn

HI = UserMessage(text="hi")


class Bench:
    def __init__(self, *answers: Answer, tools: tuple[Tool, ...] = TEST_TOOLS) -> None:
        self.model = ScriptedModel(answers)
        self.agent = Agent(self.model, Registry(tools), lambda profile, named: CHOICE)
        self.notes = Notebook()
        self.events: list[AgentEvent] = []

    async def run(self, turn: Turn) -> object:
        return await self.agent.run(turn, self.events.append, self.notes)


def result(number: int, text: str) -> ToolMessage:
    return ToolMessage(call=CallId(f"t_0_{number}"), text=text)


async def test_an_answer_without_tools_completes() -> None:
    bench = Bench(says("hello"))
    assert await bench.run(a_turn()) == Completed(message=AssistantMessage(text="hello"))
    assert bench.notes.messages == []


async def test_tools_are_run_and_their_results_given_to_the_model() -> None:
    bench = Bench(calls(("slow", {"seconds": 0})), says("done"))
    await bench.run(a_turn())
    said, answered = bench.notes.messages
    assert isinstance(said, AssistantMessage)
    assert answered == result(0, "slept for 0.0 s")
    assert bench.model.requests[1].messages == (HI, said, answered)
    assert refused(bench.model.requests[1]) is None


async def test_what_was_asked_is_not_changed_by_what_follows() -> None:
    bench = Bench(calls(("slow", {"seconds": 0})), says("done"))
    await bench.run(a_turn())
    assert bench.model.requests[0].messages == (HI,)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("nonsense", {}), "There is no tool 'nonsense'. The tools are: append, ask, boom"),
        (("append", {}), "The arguments of append are not valid"),
        (("append", {"token": 7}), "Expected `str`"),
    ],
)
async def test_a_call_that_cannot_be_made_is_told_to_the_model(
    call: tuple[str, dict[str, object]], words: str
) -> None:
    bench = Bench(calls(call), says("sorry"))
    assert isinstance(await bench.run(a_turn()), Completed)
    (answered,) = (m for m in bench.notes.messages if isinstance(m, ToolMessage))
    assert answered.failed
    assert words in answered.text
    assert bench.notes.begun == []


async def test_the_budget_counts_the_steps_of_earlier_runs() -> None:
    outcome = await Bench(calls(("slow", {"seconds": 0}))).run(a_turn(steps=2, budget=3))
    assert isinstance(outcome, Failed)
    assert outcome.code == "budget"


@pytest.mark.parametrize(
    ("error", "code"),
    [(AuthFailed("no key"), "auth_failed"), (RateLimited("slow"), "rate_limited")],
)
async def test_a_failure_of_the_model_has_a_sentence_and_a_code(
    error: HermesError, code: str
) -> None:
    assert await Bench(fails(error)).run(a_turn()) == Failed(reason=str(error), code=code)


async def test_a_lost_claim_is_no_failure_of_the_a_turn() -> None:
    bench = Bench(calls(("slow", {"seconds": 0})))
    bench.notes.lost = True
    with pytest.raises(ClaimLost):
        await bench.run(a_turn())


async def test_a_fault_in_a_tool_is_not_hidden() -> None:
    with pytest.raises(RuntimeError, match="boom"):
        await Bench(calls(("boom", {}))).run(a_turn())


async def test_a_question_suspends_and_its_answer_goes_on_where_it_stopped() -> None:
    first = Bench(calls(("ask", {"question": "Red?"}), ("slow", {"seconds": 0})))
    outcome = await first.run(a_turn())
    assert isinstance(outcome, Suspended)
    assert [question.prompt for question in outcome.questions] == ["Red?"]
    said, slept = first.notes.messages
    second = Bench(says("done"))
    resumed = msgspec.structs.replace(
        a_turn(HI, said, slept, steps=1), decisions={CallId("t_0_0"): Answered(text="yes")}
    )
    assert isinstance(await second.run(resumed), Completed)
    assert second.notes.messages == [result(0, "the person said: yes")]
    assert second.model.requests[0].step == "t_1"


async def test_an_interrupted_call_is_not_made_again_unless_it_is_repeatable() -> None:
    made = AssistantMessage(
        calls=(
            ToolCall(id=CallId("t_0_0"), name="append", arguments='{"token": "x"}'),
            ToolCall(id=CallId("t_0_1"), name="slow", arguments='{"seconds": 0}'),
        )
    )
    interrupted = frozenset({CallId("t_0_0"), CallId("t_0_1")})
    bench = Bench(says("done"))
    await bench.run(msgspec.structs.replace(a_turn(HI, made, steps=1), interrupted=interrupted))
    assert [m.text for m in bench.notes.messages] == [UNKNOWN_OUTCOME, "slept for 0.0 s"]
    assert bench.notes.begun == []


async def test_tokens_of_all_steps_add_up() -> None:
    async def counted(_request: ModelRequest, emit: Emit) -> AssistantMessage:
        emit(UsageReported(prompt_tokens=10, completion_tokens=1))
        emit(SegmentEnded())
        return AssistantMessage(text="x")

    async def calling(request: ModelRequest, emit: Emit) -> AssistantMessage:
        emit(UsageReported(prompt_tokens=5, completion_tokens=2))
        return await calls(("slow", {"seconds": 0}))(request, emit)

    outcome = await Bench(calling, counted).run(a_turn())
    assert isinstance(outcome, Completed)
    assert outcome.usage == UsageReported(prompt_tokens=15, completion_tokens=3)


class Nothing(msgspec.Struct):
    pass


def meeting(*, read_only: bool) -> tuple[Tool, list[int]]:
    """A tool that notes how many of its calls run at once."""
    at_once: list[int] = []
    open_calls = 0

    async def meet(_context: ToolContext, _arguments: msgspec.Struct) -> str:
        nonlocal open_calls
        open_calls += 1
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        at_once.append(open_calls)
        open_calls -= 1
        return "met"

    tool = Tool(
        name="meet", description="Meet.", arguments=Nothing, handler=meet, read_only=read_only
    )
    return tool, at_once


@pytest.mark.parametrize(("read_only", "most"), [(True, 3), (False, 1)])
async def test_calls_that_change_nothing_run_side_by_side_and_others_in_order(
    read_only: bool, most: int
) -> None:
    tool, at_once = meeting(read_only=read_only)
    bench = Bench(calls(*[("meet", {})] * 3), says("done"), tools=(tool,))
    await bench.run(a_turn())
    assert max(at_once) == most
    finished = [event.call for event in bench.events if isinstance(event, ToolFinished)]
    assert sorted(finished) == ["t_0_0", "t_0_1", "t_0_2"]
    if not read_only:
        assert finished == sorted(finished)
    assert refused(bench.model.requests[1]) is None


async def test_results_come_in_the_order_of_the_calls() -> None:
    bench = Bench()
    runner = CallRunner(
        a_turn(), Registry(TEST_TOOLS).for_turn(a_turn()), lambda _: None, bench.notes
    )
    wanted = [
        ToolCall(id=CallId(f"t_0_{n}"), name="slow", arguments=f'{{"seconds": {s}}}')
        for n, s in enumerate((0.02, 0))
    ]
    results, questions = await run_calls(runner, wanted)
    assert [one.call for one in results] == ["t_0_0", "t_0_1"]
    assert questions == []


def test_only_open_calls_at_the_end_are_unanswered() -> None:
    made = AssistantMessage(
        calls=tuple(ToolCall(id=CallId(c), name="x", arguments="{}") for c in "ab")
    )
    done = ToolMessage(call=CallId("a"), text="")
    assert [call.id for call in unanswered([HI, made])] == ["a", "b"]
    assert [call.id for call in unanswered([HI, made, done])] == ["b"]
    assert unanswered([HI, made, done, HI]) == []
    assert unanswered([HI]) == unanswered([]) == []
