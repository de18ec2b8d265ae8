"""The agent loop runs steps and tools, suspends turns and keeps budgets. It keeps no state between
two runs."""

from pathlib import Path
from typing import Literal

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from hermes.core.agent import AgentLoop, repeated_call, run_calls, unanswered
from hermes.core.auxiliary import Auxiliary
from hermes.core.compaction import Compactor
from hermes.core.prompt import PromptWriter
from hermes.core.tools.call import CUT_CALL, UNKNOWN_OUTCOME, ToolRuntime
from hermes.core.tools.registry import Registry
from hermes.core.tools.results import ResultFilter
from hermes.state.spill import Spill
from hermes.testing.commands import FILES_ONLY
from hermes.testing.running import refused
from hermes.testing.scripted import Answer, ScriptedModel, calls, fails, says
from hermes.testing.tools import TEST_TOOLS, append
from hermes.testing.turns import CHOICE, NO_SPILL, Notebook, a_turn, an_agent
from hermes.types.client_tools import ClientTool
from hermes.types.errors import AuthFailed, ClaimLost, HermesError, RateLimited, Rejected, TooLong
from hermes.types.events import AgentEvent, ContextCompacted, ToolFinished, ToolStarted
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit
from hermes.types.tools import AnyTool, Tool, ToolContext
from hermes.types.turns import Answered, Completed, Expired, Failed, Suspended, Turn

HI = UserMessage(text="hi")
RUNTIME = ToolRuntime(FILES_ONLY, NO_SPILL)


class Bench:
    def __init__(self, *answers: Answer, tools: tuple[AnyTool, ...] = TEST_TOOLS) -> None:
        self.model = ScriptedModel(answers)
        self.agent = an_agent(self.model, tools)
        self.notes = Notebook()
        self.events: list[AgentEvent] = []

    async def run(self, turn: Turn) -> object:
        return await self.agent.run(turn, self.events.append, self.notes)


def result(number: int, text: str) -> ToolMessage:
    return ToolMessage(call=CallId(f"t_0_{number}"), text=text)


async def test_an_answer_without_tool_calls_completes_the_turn() -> None:
    bench = Bench(says("hello"))
    assert await bench.run(a_turn()) == Completed(message=AssistantMessage(text="hello"))
    assert bench.notes.messages == []


async def test_tools_run_and_the_model_gets_their_results() -> None:
    bench = Bench(calls(("slow", {"seconds": 0})), says("done"))
    await bench.run(a_turn())
    said, answered = bench.notes.messages
    assert isinstance(said, AssistantMessage)
    assert answered == result(0, "slept for 0.0 s")
    assert bench.model.requests[1].messages == (HI, said, answered)
    assert refused(bench.model.requests[1]) is None


async def test_messages_that_steer_the_turn_enter_it_between_two_steps() -> None:
    more = UserMessage(text="in blue")

    async def call_and_steer(request: ModelRequest, emit: Emit) -> AssistantMessage:
        bench.notes.steering.append(more)
        return await calls(("slow", {"seconds": 0}))(request, emit)

    bench = Bench(call_and_steer, says("done"))
    await bench.run(a_turn())
    said, answered, steered = bench.notes.messages
    assert steered == more
    assert bench.model.requests[0].messages == (HI,)
    assert bench.model.requests[1].messages == (HI, said, answered, more)
    assert refused(bench.model.requests[1]) is None


async def test_a_request_is_not_changed_by_later_steps() -> None:
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
async def test_the_model_gets_the_error_of_an_invalid_call(
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
    ("error", "failed"),
    [
        (
            AuthFailed("no key"),
            Failed(reason="no key", code="auth_failed", status=502, temporary=True),
        ),
        (
            RateLimited("slow", 7.0),
            Failed(reason="slow", code="rate_limited", status=429, retry_after=7.0, temporary=True),
        ),
        (Rejected("no"), Failed(reason="no", code="rejected", status=400)),
    ],
)
async def test_the_error_of_a_failed_model_call_has_a_message_a_code_a_status_and_a_pause(
    error: HermesError, failed: Failed
) -> None:
    assert await Bench(fails(error)).run(a_turn()) == failed


async def test_a_lost_claim_is_not_a_failed_turn() -> None:
    bench = Bench(calls(("slow", {"seconds": 0})))
    bench.notes.lost = True
    with pytest.raises(ClaimLost):
        await bench.run(a_turn())


async def test_the_model_gets_the_error_of_a_broken_tool() -> None:
    bench = Bench(calls(("boom", {})), says("sorry"))
    assert isinstance(await bench.run(a_turn()), Completed)
    (answered,) = (m for m in bench.notes.messages if isinstance(m, ToolMessage))
    assert (answered.text, answered.failed) == ("The tool failed: RuntimeError: boom", True)


async def test_a_question_suspends_the_turn_and_its_answer_resumes_it() -> None:
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


async def test_an_interrupted_call_is_made_again_only_if_it_is_repeatable() -> None:
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


class Nothing(msgspec.Struct):
    pass


def meeting(*, read_only: bool) -> tuple[AnyTool, list[int]]:
    """Returns a tool and a list. Each call of the tool adds one item to the list: the number of
    calls that were running at that moment."""
    at_once: list[int] = []
    open_calls = 0

    async def meet(_context: ToolContext, _arguments: Nothing) -> str:
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
async def test_read_only_calls_run_concurrently_and_others_in_order(
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


async def test_results_are_in_the_order_of_the_calls() -> None:
    bench = Bench()
    turn = a_turn()
    tools = Registry(TEST_TOOLS).for_turn(turn)
    runner = await RUNTIME.for_turn(turn, tools, lambda _: None, bench.notes)
    wanted = [
        ToolCall(id=CallId(f"t_0_{n}"), name="slow", arguments=f'{{"seconds": {s}}}')
        for n, s in enumerate((0.02, 0))
    ]
    done = await run_calls(runner, wanted)
    assert [one.call for one in done.results] == ["t_0_0", "t_0_1"]
    assert not done.questions
    assert not done.waiting


def test_only_calls_without_a_result_at_the_end_are_unanswered() -> None:
    made = AssistantMessage(
        calls=tuple(ToolCall(id=CallId(c), name="x", arguments="{}") for c in "ab")
    )
    done = ToolMessage(call=CallId("a"), text="")
    assert [call.id for call in unanswered([HI, made])] == ["a", "b"]
    assert [call.id for call in unanswered([HI, made, done])] == ["b"]
    assert unanswered([HI, made, done, HI]) == []
    assert unanswered([HI]) == unanswered([]) == []


def look(read_only: bool, answers: list[str]) -> AnyTool:
    async def answer(context: ToolContext, arguments: Look) -> str:
        return answers.pop(0)

    return Tool(
        name="look",
        description="Look.",
        arguments=Look,
        handler=answer,
        read_only=read_only,
        repeatable=True,
    )


class Look(msgspec.Struct):
    at: str = "it"


@pytest.mark.parametrize("read_only", [True, False])
async def test_the_third_identical_call_without_progress_ends_the_turn(read_only: bool) -> None:
    again = calls(("look", {"at": "it"}))
    bench = Bench(again, again, again, tools=(look(read_only, ["nothing"] * 3),))
    outcome = await bench.run(a_turn())
    assert isinstance(outcome, Failed)
    assert outcome.code == "loop"
    assert "look 3 times in the same way" in outcome.reason
    assert unanswered([*a_turn().history, *bench.notes.messages]) == []


@pytest.mark.parametrize("read_only", [True, False])
async def test_a_repeated_sequence_of_calls_does_not_count_as_progress(read_only: bool) -> None:
    circle = [calls(("look", {"at": place})) for place in "ababab"]
    outcome = await Bench(*circle, tools=(look(read_only, ["nothing"] * 6),)).run(a_turn())
    assert isinstance(outcome, Failed)
    assert outcome.code == "loop"


async def test_a_new_result_counts_as_progress() -> None:
    again = calls(("look", {}))
    bench = Bench(*[again] * 5, says("it came"), tools=(look(True, ["1", "2", "3", "4", "5"]),))
    assert isinstance(await bench.run(a_turn()), Completed)


async def test_a_change_in_between_counts_as_progress(tmp_path: Path) -> None:
    steps = [
        calls(("append", {"token": str(number)})) if number % 2 else calls(("look", {}))
        for number in range(10)
    ]
    bench = Bench(*steps, says("done"), tools=(look(True, ["same"] * 5), append))
    assert isinstance(await bench.run(a_turn(workspace=tmp_path)), Completed)


@pytest.mark.parametrize("read_only", [True, False])
async def test_an_old_call_together_with_a_new_result_counts_as_progress(read_only: bool) -> None:
    places = ["main", "a", "b", "main", "c", "d", "main", "e", "main"]
    steps = [calls(("look", {"at": place})) for place in places]
    bench = Bench(*steps, says("done"), tools=(look(read_only, ["same"] * len(places)),))
    assert isinstance(await bench.run(a_turn()), Completed)


def test_a_summary_does_not_reset_the_count_of_repeated_calls() -> None:
    call = ToolCall(id=CallId("c"), name="look", arguments="{}")
    once = (AssistantMessage(calls=(call,)), ToolMessage(call=call.id, text="same"))
    notes = UserMessage(text="notes", summary=True)
    assert repeated_call([HI, *once, notes, *once, *once]) == call
    assert repeated_call([HI, *once, HI, *once, *once]) is None


async def test_calls_for_an_earlier_request_do_not_count() -> None:
    asked = AssistantMessage(calls=(ToolCall(id=CallId("s_0_0"), name="look", arguments="{}"),))
    told = ToolMessage(call=CallId("s_0_0"), text="same")
    again = calls(("look", {}))
    bench = Bench(again, again, says("done"), tools=(look(True, ["same"] * 2),))
    earlier = (HI, asked, told, AssistantMessage(text="there"), HI)
    assert isinstance(await bench.run(a_turn(*earlier)), Completed)


async def test_a_long_result_is_shortened_and_can_be_read_completely(tmp_path: Path) -> None:
    spill = Spill(tmp_path)
    text = "\n".join(f"line {number}" for number in range(20_000))
    model = ScriptedModel([calls(("look", {})), says("done")])
    agent = an_agent(model, (look(True, [text]),), results=ResultFilter(spill, longest=1000))
    turn = a_turn()
    await agent.run(turn, lambda event: None, Notebook())
    (result,) = (m for m in model.requests[1].messages if isinstance(m, ToolMessage))
    assert len(result.text) <= 1000
    assert result.text.startswith("line 0\n")
    assert result.text.endswith("line 19999")
    assert "spill:t_0_0" in result.text
    assert spill.read(str(turn.session), "spill:t_0_0") == text


async def test_a_model_without_tool_support_gets_no_tools() -> None:
    model = ScriptedModel([says("hello")])
    choice = replace(CHOICE, tools=False)
    await an_agent(model, TEST_TOOLS, choice=choice).run(a_turn(), lambda _: None, Notebook())
    assert model.requests[0].tools == ()


async def test_a_conversation_is_summarised_if_the_model_refuses_it_as_too_long() -> None:
    history = [
        message
        for number in range(20)
        for message in (UserMessage(text=f"q{number} " * 200), AssistantMessage(text="a " * 200))
    ]
    summary_in_two = [says("some notes"), says("the notes")]
    model = ScriptedModel([fails(TooLong("no")), *summary_in_two, says("hello")])
    notes, events = Notebook(), list[AgentEvent]()
    outcome = await an_agent(model, ()).run(a_turn(*history, HI), events.append, notes)
    assert isinstance(outcome, Completed)
    assert any(isinstance(event, ContextCompacted) for event in events)
    ((first, last, summary),) = notes.summaries
    assert model.requests[-1].messages == (*history[:first], summary, *history[last:], HI)


def long_history() -> list[Message]:
    return [UserMessage(text="q " * 9000), AssistantMessage(text="a " * 9000)] * 20


async def test_without_compaction_the_error_of_the_model_is_passed_on() -> None:
    model = ScriptedModel([says("hello"), fails(TooLong("no"))])
    agent = AgentLoop(
        model,
        Registry(()),
        lambda profile, named: CHOICE,
        PromptWriter(),
        Compactor(Auxiliary(model, lambda main: main)),
        RUNTIME,
        threshold=None,
    )
    turn, notes = a_turn(*long_history(), HI), Notebook()
    assert isinstance(await agent.run(turn, lambda event: None, notes), Completed)
    outcome = await agent.run(turn, lambda event: None, notes)
    assert outcome == Failed(reason="no", code="context_length_exceeded", status=400)
    assert notes.summaries == []


async def test_a_request_without_a_session_is_never_summarised() -> None:
    model = ScriptedModel([says("hello"), fails(TooLong("no"))])
    turn, notes = replace(a_turn(*long_history(), HI), stateless=True), Notebook()
    agent = an_agent(model, ())
    assert isinstance(await agent.run(turn, lambda event: None, notes), Completed)
    outcome = await agent.run(turn, lambda event: None, notes)
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.status) == ("context_length_exceeded", 400)
    assert "Send fewer or shorter ones, or use a session" in outcome.reason
    assert notes.summaries == []


async def test_a_conversation_that_can_not_be_shortened_fails_with_an_explanation() -> None:
    model = ScriptedModel([fails(TooLong("the window is too small"))])
    outcome = await an_agent(model, ()).run(a_turn(), lambda event: None, Notebook())
    explained = "the window is too small"
    assert outcome == Failed(reason=explained, code="context_length_exceeded", status=400)


async def test_a_turn_with_a_cut_off_answer_completes_and_reports_the_cut() -> None:
    outcome = await Bench(says("Once upon", cut="length")).run(a_turn())
    assert outcome == Completed(message=AssistantMessage(text="Once upon", cut="length"))


@pytest.mark.parametrize(
    ("cut", "code", "status"),
    [("length", "output_truncated", 422), ("content_filter", "content_filter", 400)],
)
async def test_an_answer_that_was_cut_off_before_its_first_word_says_why_it_failed(
    cut: Literal["length", "content_filter"], code: str, status: int
) -> None:
    outcome = await Bench(says("", cut=cut)).run(a_turn())
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.status) == (code, status)


async def test_no_call_of_an_answer_that_was_cut_off_runs(tmp_path: Path) -> None:
    wanted = ("append", {"path": "a.txt", "text": "half"})
    bench = Bench(calls(wanted, wanted, cut="length"), says("I could not."))
    outcome = await bench.run(a_turn(workspace=tmp_path))
    assert outcome == Completed(message=AssistantMessage(text="I could not."))
    assert bench.notes.begun == []
    assert list(tmp_path.iterdir()) == []
    assert bench.notes.messages[1:] == [
        ToolMessage(call=CallId(f"t_0_{number}"), text=CUT_CALL, failed=True) for number in (0, 1)
    ]
    assert refused(bench.model.requests[1]) is None


async def test_a_call_that_was_cut_off_does_not_run_after_a_restart_either(tmp_path: Path) -> None:
    call = ToolCall(id=CallId("t_0_0"), name="append", arguments="{}", cut=True)
    stored = msgspec.json.encode(AssistantMessage(calls=(call,), cut="length"))
    said = msgspec.json.decode(stored, type=AssistantMessage)
    bench = Bench(says("no"))
    await bench.run(a_turn(HI, said, workspace=tmp_path))
    assert bench.notes.messages == [ToolMessage(call=call.id, text=CUT_CALL, failed=True)]


async def test_calls_that_are_cut_off_twice_in_a_row_end_the_turn() -> None:
    first, second = ({"path": "a", "text": text} for text in ("x", "y"))
    bench = Bench(calls(("append", first), cut="length"), calls(("append", second), cut="length"))
    outcome = await bench.run(a_turn())
    assert isinstance(outcome, Failed)
    assert outcome.code == "output_truncated"
    between = Bench(
        calls(("append", first), cut="length"),
        calls(("slow", {"seconds": 0})),
        calls(("append", second), cut="length"),
        says("done"),
    )
    assert isinstance(await between.run(a_turn()), Completed)


LISTEN = ClientTool(name="listen")


async def test_calls_of_client_tools_suspend_the_turn_after_our_tools_have_run() -> None:
    bench = Bench(calls(("listen", {"at": "sea"}), ("slow", {"seconds": 0})))
    outcome = await bench.run(replace(a_turn(), client_tools=(LISTEN,)))
    assert isinstance(outcome, Suspended)
    assert outcome.questions == ()
    assert [(call.id, call.name) for call in outcome.calls] == [("t_0_0", "listen")]
    assert result(1, "slept for 0.0 s") in bench.notes.messages
    # There is no `ToolStarted` event for the client's tool yet: the client learns about its call
    # after the suspension is committed.
    started = [event.name for event in bench.events if isinstance(event, ToolStarted)]
    assert started == ["slow"]
    assert LISTEN in bench.model.requests[0].tools


async def test_a_turn_whose_client_results_expired_ends_without_a_model_call() -> None:
    made = AssistantMessage(calls=(ToolCall(id=CallId("t_0_0"), name="listen", arguments="{}"),))
    turn = a_turn(HI, made, steps=1, decisions={CallId("t_0_0"): Expired()})
    outcome = await Bench().run(replace(turn, client_tools=(LISTEN,)))
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.status) == ("tool_results_expired", 400)


async def test_a_request_with_client_tools_is_refused_for_a_model_without_tool_support() -> None:
    agent = an_agent(ScriptedModel([]), TEST_TOOLS, choice=replace(CHOICE, tools=False))
    turn = replace(a_turn(), client_tools=(LISTEN,))
    outcome = await agent.run(turn, lambda _: None, Notebook())
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.status) == ("tools_not_supported", 400)
    assert "can't use tools" in outcome.reason
