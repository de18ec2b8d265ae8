"""The agent loop: calls the model and runs its tool calls until there is an answer.

It keeps no state between runs. If the history ends with unanswered tool calls, the loop runs them
first. In this way, a turn is resumed after a restart or after a person's decision.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

import anyio

from hermes.core.compaction import Compactor
from hermes.core.conversation import ModelConversation
from hermes.core.prompt import PromptWriter
from hermes.core.structured import structured_outcome
from hermes.core.tools.call import CallRunner, ToolRuntime
from hermes.core.window import Window
from hermes.text.quantity import counted
from hermes.types.errors import ClaimLost, HermesError, TooLong, ToolsNotSupported
from hermes.types.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from hermes.types.models import ModelProvider
from hermes.types.profile import AgentProfile, ModelChoice
from hermes.types.protocols import Checkpoint, Emit, Toolbox
from hermes.types.tools import AnyTool, NeedsClient, NeedsPerson
from hermes.types.turns import Completed, Expired, Failed, Outcome, Question, Suspended, Turn
from hermes.types.value import Value

ChooseModel = Callable[[AgentProfile, str | None], ModelChoice]
"""Returns the model for a turn: the model that the request names, or otherwise the model of the
agent's profile."""
Recall = Callable[[Turn], Awaitable[str]]
"""Searches earlier conversations, and returns the text that is relevant to the last request of the
turn."""
LOOP_CALLS = 3
"""If the model makes the same tool call this many times with the same result, the loop ends the
turn."""
NO_RESULTS = "The client did not send the results of its tools in time."


CUT_CALLS = Failed(
    reason="The model's tool calls were cut off at the limit of output tokens twice in a row, so I"
    " stopped. Raise max_tokens, or ask for a smaller step.",
    code="output_truncated",
    status=422,
)
CUT_ANSWER = Failed(
    reason="The model reached its limit of output tokens before it said anything. Raise"
    " max_tokens, or ask for less.",
    code="output_truncated",
    status=422,
)
FILTERED_ANSWER = Failed(
    reason="The provider's content filter blocked the whole answer. Ask in another way.",
    code="content_filter",
    status=400,
)


async def recall_nothing(turn: Turn) -> str:
    return ""


class AgentLoop:
    """Runs turns. Any number of turns can run at the same time."""

    def __init__(
        self,
        model: ModelProvider,
        toolbox: Toolbox,
        choose: ChooseModel,
        prompt_writer: PromptWriter,
        compactor: Compactor,
        runtime: ToolRuntime,
        *,
        threshold: float | None = 0.75,
        recall: Recall = recall_nothing,
    ) -> None:
        self._model = model
        self._toolbox = toolbox
        self._choose = choose
        self._prompt_writer = prompt_writer
        self._compactor = compactor
        self._runtime = runtime
        self._threshold = threshold
        self._recall = recall

    async def run(self, turn: Turn, emit: Emit, checkpoint: Checkpoint) -> Outcome:
        try:
            return await self._steps(turn, emit, checkpoint)
        except ClaimLost:
            raise
        except HermesError as error:
            return Failed.of(error)

    async def _steps(self, turn: Turn, emit: Emit, checkpoint: Checkpoint) -> Outcome:
        choice = self._choose(turn.profile, turn.model)
        tools = self._tools(turn, choice)
        runner = await self._runtime.for_turn(turn, tools, emit, checkpoint)
        # The messages of a request without a session are not summarised, because no later request
        # could reuse the summary.
        threshold = None if turn.stateless else self._threshold
        window = Window.of(choice.window, choice.max_tokens, threshold)
        conversation = ModelConversation(turn, choice, tools, window, emit, checkpoint)
        await conversation.begin(self._prompt_writer)
        await conversation.compact_on_request(self._compactor, self._prompt_writer)
        conversation.recalled = await self._recall(turn)
        step = turn.steps
        while True:
            if calls := unanswered(conversation.history):
                if _client_timed_out(turn, calls):
                    return Failed(reason=NO_RESULTS, code="tool_results_expired", status=400)
                done = await run_calls(runner, calls)
                conversation.answer(done.results)
                if done.questions or done.waiting:
                    return Suspended(questions=done.questions, calls=done.waiting)
                if stuck := repeated_call(conversation.history):
                    return _repetition_failure(stuck)
                if cut_off_twice(conversation.history):
                    return CUT_CALLS
                continue
            if step >= turn.profile.budget.steps:
                return Failed(
                    reason=f"I stopped after {counted(step, 'step')} without an answer. Ask me to"
                    " go on, or raise agent.max_turns.",
                    code="budget",
                )
            conversation.add(*await checkpoint.steered())
            message = await self._call_model(conversation, step)
            step += 1
            if not message.calls:
                return await self._outcome(conversation, message, step)
            if runner.use_files(message.calls):
                checkpoint.uses_files()
            await checkpoint.said(message)
            conversation.add(message)

    def _tools(self, turn: Turn, choice: ModelChoice) -> Mapping[str, AnyTool]:
        """Returns the agent's own tools for the turn. Tools that have the name of a client tool are
        left out, because the client tool replaces them."""
        if not choice.tools:
            if turn.client_tools:
                raise ToolsNotSupported(
                    f"The model {choice.model!r} can't use tools: send the request without tools."
                )
            return {}
        tools = self._toolbox.for_turn(turn)
        if not turn.client_tools:
            return tools
        theirs = {tool.name for tool in turn.client_tools}
        if theirs.isdisjoint(tools):
            # All turns must get this same mapping. The prompt cache compares mappings by identity,
            # so it would never find a prompt for a copy.
            return tools
        return {name: tool for name, tool in tools.items() if name not in theirs}

    async def _call_model(self, conversation: ModelConversation, step: int) -> AssistantMessage:
        """Returns the model's next message. A conversation that is too long is summarised first."""
        if conversation.is_long():
            await conversation.compact(self._compactor, self._prompt_writer)
        try:
            return await self._model.complete(conversation.request(step), conversation.emit)
        except TooLong as error:
            if conversation.turn.stateless:
                raise _too_long(conversation.choice) from error
            conversation.reduce_window()
            if not await conversation.compact(self._compactor, self._prompt_writer):
                raise
        return await self._model.complete(conversation.request(step), conversation.emit)

    async def _outcome(
        self, conversation: ModelConversation, message: AssistantMessage, step: int
    ) -> Outcome:
        """Returns the outcome of a turn whose last message is `message`."""
        wanted = conversation.turn.response_format
        if wanted is None:
            return _plain_outcome(message)

        async def repair(wrong: AssistantMessage, what: str) -> AssistantMessage:
            said = (wrong, UserMessage(text=what)) if wrong.text else (UserMessage(text=what),)
            return await self._model.complete(conversation.request(step, said), conversation.emit)

        outcome = await structured_outcome(wanted, message, repair)
        if isinstance(outcome, Completed):
            conversation.say(outcome.message.text)
        return outcome


def _client_timed_out(turn: Turn, calls: Sequence[ToolCall]) -> bool:
    """Returns whether the client failed to send the result of one of these calls in time."""
    theirs = {tool.name for tool in turn.client_tools}
    return any(
        call.name in theirs and isinstance(turn.decisions.get(call.id), Expired) for call in calls
    )


def _plain_outcome(message: AssistantMessage) -> Outcome:
    if message.text.strip():
        return Completed(message=message)
    if message.cut:
        return CUT_ANSWER if message.cut == "length" else FILTERED_ANSWER
    empty = "The model gave an empty answer. Ask again."
    return Failed(reason=empty, code="empty_answer", temporary=True)


def _repetition_failure(call: ToolCall) -> Outcome:
    return Failed(
        reason=f"I called {call.name} {LOOP_CALLS} times in the same way and learned nothing new,"
        " so I stopped. Tell me more, or ask in another way.",
        code="loop",
    )


def _too_long(choice: ModelChoice) -> TooLong:
    return TooLong(
        f"These messages are too long for {choice.model!r}. Send fewer or shorter ones, or use a"
        " session, where earlier messages are summarised."
    )


def unanswered(history: Sequence[Message]) -> list[ToolCall]:
    """Returns the calls at the end of the history that have no result yet."""
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


def repeated_call(history: Sequence[Message]) -> ToolCall | None:
    """Returns a call that the model made LOOP_CALLS times without progress; None if there is no
    such call. Only the steps since the last request count. A step is an answer of the model with
    its tool calls. A step makes progress if it contains a call that earlier steps did not make, or
    a call with a new result. After a step that makes progress, the counting starts again.
    """
    known: set[tuple[str, str, str]] = set()
    counts: Counter[tuple[str, str, str]] = Counter()
    for calls, results in _steps_since_request(history):
        made = {(call.name, call.arguments, results.get(call.id, "")): call for call in calls}
        if not known.issuperset(made):
            known.update(made)
            counts.clear()
        counts.update(made.keys())
        for same, call in made.items():
            if counts[same] >= LOOP_CALLS:
                return call
    return None


def cut_off_twice(history: Sequence[Message]) -> bool:
    """Returns whether the model's last two answers were both cut off in the middle of a tool
    call."""
    steps = _steps_since_request(history)[-2:]
    return len(steps) == 2 and all(call.cut for calls, _ in steps for call in calls)


def _steps_since_request(
    history: Sequence[Message],
) -> list[tuple[tuple[ToolCall, ...], dict[str, str]]]:
    """Returns a pair for each step since the last request: the tool calls of the step, and a
    mapping from call ids to results. All pairs have the same mapping, with the results of all these
    steps."""
    steps: list[tuple[tuple[ToolCall, ...], dict[str, str]]] = []
    results: dict[str, str] = {}
    for message in reversed(history):
        match message:
            case UserMessage(summary=False):
                break
            case ToolMessage(call=answered, text=text):
                results[answered] = text
            case AssistantMessage(calls=calls):
                steps.append((calls, results))
    return steps[::-1]


class RanCalls(Value):
    """The results of one step, the questions that a person must answer, and the calls that the
    client must run."""

    results: tuple[ToolMessage, ...]
    questions: tuple[Question, ...]
    waiting: tuple[ToolCall, ...]
    """Calls of client tools, which the client must run."""


async def run_calls(runner: CallRunner, calls: Sequence[ToolCall]) -> RanCalls:
    """Runs the calls, except those that need a person or the client. The calls run concurrently if
    all of them are read-only, and otherwise one after the other."""
    results: dict[int, ToolMessage] = {}
    questions: dict[int, Question] = {}
    waiting: dict[int, ToolCall] = {}
    errors: list[HermesError] = []

    async def run(index: int, call: ToolCall) -> None:
        try:
            results[index] = await runner.run(call)
        except NeedsPerson as signal:
            questions[index] = signal.question
        except NeedsClient as signal:
            waiting[index] = signal.call
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
    return RanCalls(
        results=tuple(results[index] for index in sorted(results)),
        questions=tuple(questions[index] for index in sorted(questions)),
        waiting=tuple(waiting[index] for index in sorted(waiting)),
    )
