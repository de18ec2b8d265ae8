"""The loop: prompt, model, tool calls, results, and again, until there is an answer.

It holds nothing between runs. A history that ends in unanswered tool calls is simply gone on with,
so that a restart and a person's decision are the same case.
"""

from collections.abc import Callable, Sequence

import anyio

from hermes.core.prompt import system_prompt
from hermes.core.tools.call import CallRunner
from hermes.types.errors import ClaimLost, HermesError
from hermes.types.events import AgentEvent, UsageReported
from hermes.types.identity import TurnId
from hermes.types.messages import AssistantMessage, Message, ToolCall, ToolMessage
from hermes.types.profile import AgentProfile, ModelChoice
from hermes.types.protocols import Checkpoint, Emit, ModelProvider, ModelRequest, Toolbox
from hermes.types.tools import NeedsPerson
from hermes.types.turns import Completed, Failed, Outcome, Question, Suspended, Turn

Choose = Callable[[AgentProfile, str | None], ModelChoice]
"""The model for a turn: the profile's, or the one that the request names."""


class Agent:
    """Runs turns; safe to run any number at once."""

    def __init__(self, model: ModelProvider, toolbox: Toolbox, choose: Choose) -> None:
        self._model = model
        self._toolbox = toolbox
        self._choose = choose

    async def run(self, turn: Turn, emit: Emit, checkpoint: Checkpoint) -> Outcome:
        try:
            return await self._steps(turn, _Metered(emit), checkpoint)
        except ClaimLost:
            raise
        except HermesError as error:
            return Failed(reason=str(error), code=_code(error))

    async def _steps(self, turn: Turn, emit: "_Metered", checkpoint: Checkpoint) -> Outcome:
        tools = self._toolbox.for_turn(turn)
        runner = CallRunner(turn, tools, emit, checkpoint)
        choice = self._choose(turn.profile, turn.model)
        system = system_prompt(turn)
        history: list[Message] = list(turn.history)
        step = turn.steps
        while True:
            if calls := unanswered(history):
                results, questions = await run_calls(runner, calls)
                history += results
                if questions:
                    return Suspended(questions=tuple(questions))
                continue
            if step >= turn.profile.budget.steps:
                return Failed(
                    reason=f"I stopped after {step} steps without an answer. Ask me to go on,"
                    " or raise agent.max_turns.",
                    code="budget",
                )
            request = ModelRequest(
                choice=choice,
                system=system,
                messages=tuple(history),
                step=f"{TurnId(turn.id)}_{step}",
                tools=tuple(tools.values()),
                sampling=turn.sampling,
                live=turn.live,
                conversation=str(turn.session),
            )
            message = await self._model.complete(request, emit)
            step += 1
            if not message.calls:
                return _ended(message, emit.usage)
            await checkpoint.said(message)
            history.append(message)


def _ended(message: AssistantMessage, usage: UsageReported | None) -> Outcome:
    if message.text.strip():
        return Completed(message=message, usage=usage)
    return Failed(reason="The model gave an empty answer. Ask again.", code="empty_answer")


def unanswered(history: Sequence[Message]) -> list[ToolCall]:
    """The calls at the end of the history that have no result yet."""
    answered = set()
    for message in reversed(history):
        match message:
            case ToolMessage(call=call):
                answered.add(call)
            case AssistantMessage(calls=calls):
                return [call for call in calls if call.id not in answered]
            case _:
                return []
    return []


async def run_calls(
    runner: CallRunner, calls: list[ToolCall]
) -> tuple[list[ToolMessage], list[Question]]:
    """Runs what needs nobody, side by side where nothing is changed; the rest are questions."""
    results: dict[int, ToolMessage] = {}
    questions: dict[int, Question] = {}
    errors: list[HermesError] = []

    async def run(index: int, call: ToolCall) -> None:
        try:
            results[index] = await runner.run(call)
        except NeedsPerson as signal:
            questions[index] = signal.question
        except HermesError as error:
            errors.append(error)

    if all(runner.read_only(call) for call in calls):
        async with anyio.create_task_group() as group:
            for index, call in enumerate(calls):
                group.start_soon(run, index, call)
    else:
        for index, call in enumerate(calls):
            if not errors:
                await run(index, call)
    if errors:
        raise errors[0]
    return (
        [results[index] for index in sorted(results)],
        [questions[index] for index in sorted(questions)],
    )


class _Metered:
    """Passes events on and adds up the tokens."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.usage: UsageReported | None = None

    def __call__(self, event: AgentEvent) -> None:
        if isinstance(event, UsageReported):
            before = self.usage or UsageReported(prompt_tokens=0, completion_tokens=0)
            self.usage = UsageReported(
                prompt_tokens=before.prompt_tokens + event.prompt_tokens,
                completion_tokens=before.completion_tokens + event.completion_tokens,
            )
        self._emit(event)


def _code(error: HermesError) -> str:
    name = type(error).__name__
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
