"""Turns, agents and checkpoints for tests of the agent and its tools."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hermes.boundary.execution.local import LocalSandbox
from hermes.control.routing import DEFAULT_AGENT
from hermes.core.agent import AgentLoop
from hermes.core.auxiliary import Auxiliary
from hermes.core.compaction import Compactor
from hermes.core.prompt import PromptWriter
from hermes.core.tools.call import CallContext, ToolRuntime, scope_of
from hermes.core.tools.registry import Registry
from hermes.core.tools.results import Redact, ResultFilter
from hermes.state.spill import Spill
from hermes.testing.commands import FILES_ONLY
from hermes.testing.scripted import ScriptedModel
from hermes.types.agents import HostedAgent
from hermes.types.approvals import ProposedAction
from hermes.types.errors import ClaimLost
from hermes.types.events import AgentEvent
from hermes.types.execution import ExecutionBackend
from hermes.types.identity import AgentId, CallId, PersonId, Principal, SessionKey, Source, TurnId
from hermes.types.messages import AssistantMessage, Message, ToolMessage, UserMessage
from hermes.types.models import ModelProvider
from hermes.types.profile import AgentProfile, Budget, ModelChoice
from hermes.types.sending import Messenger
from hermes.types.tools import AnyTool
from hermes.types.turns import Decision, Prompt, Turn

CHOICE = ModelChoice(provider="p", model="m", base_url="")
PRIVATE = Source(platform="p", account="p", chat_kind="private", chat_id="1", user_id="1")
GROUP = Source(platform="p", account="p", chat_kind="group", chat_id="-5", user_id="1")
CALL = CallId("t_0_0")
NO_SPILL = ResultFilter(Spill(Path("/nonexistent")))
"""A result filter for tests with short results. It can't store a long result, because its folder
does not exist."""


class Notebook:
    """A `Checkpoint` that stores nothing: it only records the calls that the agent makes to it, in
    order."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.begun: list[CallId] = []
        self.handles: list[str] = []
        self.prompts: list[Prompt] = []
        self.summaries: list[tuple[int, int, UserMessage]] = []
        self.log: list[str] = []
        self.lost = False
        self.used_files = False
        self.steering: list[UserMessage] = []
        """Messages that enter the turn before the next model call."""

    async def said(self, message: AssistantMessage) -> None:
        if self.lost:
            raise ClaimLost("taken over")
        self.messages.append(message)
        self.log.append("said")

    async def started(self, call: CallId, handle: str | None = None) -> None:
        self.begun.append(call)
        if handle:
            self.handles.append(handle)
        self.log.append(f"started {handle}" if handle else "started")

    async def answered(self, message: ToolMessage) -> None:
        self.messages.append(message)
        self.log.append(f"answered {message.text}")

    async def steered(self) -> Sequence[UserMessage]:
        found, self.steering = self.steering, []
        self.messages += found
        return found

    def prompted(self, prompt: Prompt) -> None:
        self.prompts.append(prompt)

    def uses_files(self) -> None:
        self.used_files = True

    async def compacted(self, first: int, last: int, summary: UserMessage) -> None:
        self.summaries.append((first, last, summary))


def a_turn(
    *history: Message,
    workspace: Path | None = None,
    home: Path | None = None,
    source: Source = PRIVATE,
    person: str | None = None,
    principal: Principal | None = None,
    steps: int = 0,
    budget: int = 90,
    decisions: dict[CallId, Decision] | None = None,
) -> Turn:
    """Returns a turn that answers the last message of the history. The session of the turn belongs
    to the chat `source`."""
    return Turn(
        id=TurnId("t"),
        session=SessionKey(
            agent=DEFAULT_AGENT,
            platform=source.platform,
            kind=source.chat_kind,
            chat=source.chat_id,
            user=None if source.chat_kind == "private" else source.user_id,
        ),
        agent=DEFAULT_AGENT,
        source=source,
        profile=AgentProfile(
            id=DEFAULT_AGENT,
            home=str(home or ""),
            workspace=str(workspace or ""),
            model=CHOICE,
            budget=Budget(steps=budget),
        ),
        history=history or (UserMessage(text="hi"),),
        person=PersonId(person or f"{source.platform}:{source.user_id}"),
        principal=principal,
        steps=steps,
        decisions=decisions or {},
    )


def hosted_agent(id: AgentId = DEFAULT_AGENT) -> HostedAgent:
    """Returns an agent for tests that never call the agent."""

    async def end_session(turn: Turn, ended_at: float) -> None:
        raise AssertionError("no conversation ends")

    return HostedAgent(
        profile=AgentProfile(id=id),
        runner=an_agent(ScriptedModel([]), ()),
        backend=FILES_ONLY,
        end_session=end_session,
        write_title=None,
    )


def an_agent(
    model: ModelProvider,
    tools: Sequence[AnyTool],
    *,
    choice: ModelChoice = CHOICE,
    prompt_writer: PromptWriter | None = None,
    results: ResultFilter | None = None,
) -> AgentLoop:
    """Returns an agent that uses `model` both as its main model and as its auxiliary model."""
    return AgentLoop(
        model,
        Registry(tools),
        lambda profile, named: choice,
        prompt_writer or PromptWriter(),
        Compactor(Auxiliary(model, lambda main: main)),
        ToolRuntime(FILES_ONLY, results or NO_SPILL),
    )


def files_of(turn: Turn) -> LocalSandbox:
    """Returns a sandbox on this machine for the turn. The sandbox refuses commands."""
    return LocalSandbox(scope_of(turn), None)


async def use(
    tool: AnyTool,
    turn: Turn,
    arguments: Mapping[str, object],
    *,
    notes: Notebook | None = None,
    events: list[AgentEvent] | None = None,
    call: CallId = CALL,
    redact: Redact = str,
    backend: ExecutionBackend = FILES_ONLY,
) -> str:
    """Calls the tool with these arguments, as a model would, and returns the text of the result."""
    heard = events if events is not None else []
    sandbox = await backend.open(scope_of(turn))
    context = CallContext(turn, call, sandbox, heard.append, notes or Notebook(), redact)
    return await tool.bind(msgspec.json.encode(arguments).decode()).run(context)


async def review(
    tool: AnyTool,
    turn: Turn,
    arguments: Mapping[str, object],
    *,
    backend: ExecutionBackend = FILES_ONLY,
    messenger: Messenger | None = None,
) -> ProposedAction | None:
    """Returns the action of a call with these arguments, as the tool describes it; None if the call
    never needs approval."""
    sandbox = await backend.open(scope_of(turn))
    context = CallContext(turn, CALL, sandbox, lambda event: None, Notebook(), messenger=messenger)
    return await tool.bind(msgspec.json.encode(arguments).decode()).review(context)
