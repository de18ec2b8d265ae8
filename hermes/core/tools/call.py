"""Runs a tool call, and stores its result."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from hermes.core.approvals import ApprovalGate
from hermes.core.conversation_record import ConversationRecord
from hermes.core.models.attachments import ReadMedia, no_media
from hermes.core.tools.received_files import save_files
from hermes.core.tools.results import Redact, ResultFilter, redacted
from hermes.core.tools.summary import summarize, summarize_change, summarize_result
from hermes.text.role_markers import restore_arguments
from hermes.text.secret_files import is_secret_file
from hermes.types.errors import ClaimLost, StoreUnavailable, ToolFailed
from hermes.types.events import ToolFinished, ToolProgress, ToolStarted
from hermes.types.execution import CommandPlace, ExecutionBackend, Sandbox, SandboxScope
from hermes.types.identity import CallId
from hermes.types.messages import ToolCall, ToolMessage
from hermes.types.protocols import Checkpoint, Emit
from hermes.types.sending import Messenger, OutgoingFile
from hermes.types.tools import AnyTool, NeedsClient, NeedsPerson
from hermes.types.turns import Decision, Turn

log = logging.getLogger(__name__)

MessengerOf = Callable[[Turn, CallId], Messenger]
"""Returns the messenger with which a tool call can send messages."""

UNKNOWN_OUTCOME = (
    "Outcome unknown: the gateway restarted while this ran. It may or may not have taken effect;"
    " it was not run again. Check before you repeat it."
)
CUT_CALL = (
    "Not run: your answer was cut off at the limit of output tokens, so this call may not be whole."
    " Make it again with shorter arguments, in several smaller calls if necessary."
)
PROGRESS_LENGTH = 200
"""Maximum number of characters of a progress text."""
SHOWN_CHANGE = 200_000
"""Maximum number of characters of a file whose changes are shown to the person as a diff. For
longer files, there is no diff, because redacting them takes too long."""
FAULT_LENGTH = 1000
"""Maximum number of characters that the model sees of an unexpected error of a tool."""


def scope_of(turn: Turn) -> SandboxScope:
    """Returns the agent, session and folders that determine in which sandbox the tools of the turn
    run."""
    return SandboxScope(
        agent=turn.agent,
        session=turn.session,
        workspace=turn.profile.workspace,
        home=turn.profile.home,
        person=turn.person,
    )


class CallContext:
    """The information and services that a tool can use during one call (its ToolContext)."""

    def __init__(
        self,
        turn: Turn,
        call: CallId,
        sandbox: Sandbox,
        emit: Emit,
        checkpoint: Checkpoint,
        redact: Redact = str,
        messenger: Messenger | None = None,
        record: ConversationRecord | None = None,
    ) -> None:
        self.turn = turn
        self.call = call
        self.sandbox = sandbox
        self.place: CommandPlace | None = None
        self.outgoing: dict[str, OutgoingFile] = {}
        self._record = record or ConversationRecord(turn, ())
        self._emit = emit
        self._checkpoint = checkpoint
        self.redact = redact
        self._messenger = messenger
        self.diff = ""
        """The diff of the change that was passed to `show_change`."""

    @property
    def decision(self) -> Decision | None:
        return self.turn.decisions.get(self.call)

    @property
    def messenger(self) -> Messenger:
        if self._messenger is None:
            raise ToolFailed("Messages can't be sent: no chat platform is configured.")
        return self._messenger

    def knows_file(self, path: str) -> bool:
        return self._record.knows_file(path)

    def was_mentioned(self, text: str) -> bool:
        return self._record.was_mentioned(text)

    async def started(self, handle: str) -> None:
        await self._checkpoint.started(self.call, handle)

    def progress(self, text: str) -> None:
        self._emit(ToolProgress(call=self.call, text=self.redact(text)[:PROGRESS_LENGTH]))

    async def show_change(self, path: str, before: str, after: str) -> None:
        if max(len(before), len(after)) <= SHOWN_CHANGE and not is_secret_file(
            str(PurePosixPath(path))
        ):
            self.diff = await anyio.to_thread.run_sync(summarize_change, before, after, self.redact)


class ToolRuntime:
    """Creates the runner for the tool calls of each turn."""

    def __init__(
        self,
        backend: ExecutionBackend,
        results: ResultFilter,
        read_media: ReadMedia = no_media,
        messenger_of: MessengerOf | None = None,
        gate: ApprovalGate | None = None,
    ) -> None:
        """`messenger_of` is None if no messages can be sent. `gate` is None if no call needs an
        approval."""
        self._backend = backend
        self._results = results
        self._read_media = read_media
        self._messenger_of = messenger_of
        self._gate = gate

    async def for_turn(
        self, turn: Turn, tools: Mapping[str, AnyTool], emit: Emit, checkpoint: Checkpoint
    ) -> "CallRunner":
        """Opens the sandbox of the turn, and copies the files of the request into the workspace of
        the sandbox. Returns the runner for the turn's calls."""
        sandbox = await self._backend.open(scope_of(turn))
        if await save_files(turn.history, sandbox, self._read_media):
            checkpoint.uses_files()
        runner = CallRunner(turn, tools, sandbox, emit, checkpoint, self._results)
        runner.messenger_of, runner.gate = self._messenger_of, self._gate
        return runner


class CallRunner:
    """Runs the tool calls of one turn."""

    def __init__(
        self,
        turn: Turn,
        tools: Mapping[str, AnyTool],
        sandbox: Sandbox,
        emit: Emit,
        checkpoint: Checkpoint,
        results: ResultFilter,
    ) -> None:
        self.messenger_of: MessengerOf | None = None
        """Returns the messenger of a call; None if no messages can be sent."""
        self.gate: ApprovalGate | None = None
        """Asks a person before dangerous calls; None if no call needs an approval."""
        self._turn = turn
        self._tools = tools
        self._client_tools = {tool.name for tool in turn.client_tools}
        self._sandbox = sandbox
        self._emit = emit
        self._checkpoint = checkpoint
        self._results = results
        self._record = ConversationRecord(
            turn, {tool.name for tool in tools.values() if tool.untrusted}
        )

    def read_only(self, call: ToolCall) -> bool:
        if call.name in self._client_tools:
            return True
        tool = self._tools.get(call.name)
        return tool is not None and tool.read_only

    def use_files(self, calls: Sequence[ToolCall]) -> bool:
        """Returns whether at least one of the calls can use the agent's files."""
        return any(
            self._tools[call.name].uses_files
            for call in calls
            if call.name in self._tools and call.name not in self._client_tools
        )

    async def run(self, call: ToolCall) -> ToolMessage:
        """Runs the call, commits its result and returns it.

        Raises NeedsPerson if the call must wait for a person, and NeedsClient if only the client
        can run it.
        """
        theirs = call.name in self._client_tools and not call.cut
        if theirs and _is_json_object(call.arguments):
            raise NeedsClient(replace(call, arguments=restore_arguments(call.arguments)))
        shown = await summarize(call.arguments, self._results.redact, self._results.longest_secret)
        self._emit(
            ToolStarted(call=call.id, name=call.name, label=shown.label, arguments=shown.arguments)
        )
        since = time.monotonic()
        context = CallContext(
            self._turn,
            call.id,
            self._sandbox,
            self._emit,
            self._checkpoint,
            self._results.redact,
            self.messenger_of(self._turn, call.id) if self.messenger_of else None,
            self._record,
        )
        try:
            text, failed = await self._result(call, context), False
        except ToolFailed as error:
            text, failed = str(error), True
        except (NeedsPerson, ClaimLost, StoreUnavailable):
            raise
        except Exception as error:
            log.exception("the tool %s raised an unexpected error", call.name)
            fault = redacted(f"{type(error).__name__}: {error}", self._results.redact, FAULT_LENGTH)
            text, failed = f"The tool failed: {fault}", True
        shortened = await self._results.apply(self._turn, call.id, text)
        if shortened.spilled:
            self._checkpoint.uses_files()
        result = ToolMessage(call=call.id, text=shortened.text, failed=failed)
        shown_as = summarize_result(result.text)
        self._emit(
            ToolFinished(
                call=call.id,
                name=call.name,
                seconds=round(time.monotonic() - since, 3),
                failed=failed,
                result=shown_as,
                diff="" if failed else context.diff,
            )
        )
        if failed:
            log.info("the tool %s failed in turn %s: %s", call.name[:100], self._turn.id, shown_as)
        await self._checkpoint.answered(result)
        self._record.add(call, result)
        return result

    async def _result(self, call: ToolCall, context: CallContext) -> str:
        if call.cut:
            raise ToolFailed(CUT_CALL)
        if call.name in self._client_tools:
            raise ToolFailed(f"The arguments of {call.name} are not a JSON object.")
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted({*self._tools, *self._client_tools})) or "none"
            raise ToolFailed(f"There is no tool {call.name!r}. The tools are: {known}.")
        bound = tool.bind(restore_arguments(call.arguments))
        if not tool.repeatable and call.id in self._turn.interrupted:
            raise ToolFailed(UNKNOWN_OUTCOME)
        if self.gate is not None:
            action = await bound.review(context)
            if action is None:
                self.gate.check_harmless(self._turn, call.id)
            else:
                tainted = action.leaves and self._record.tainted
                context.place = await self.gate.permit(self._turn, call.id, action, tainted=tainted)
        if not tool.repeatable:
            # After a crash, a call that was started is not run again. A call that waits for a
            # person must still run, so the call is marked as started only after the approval.
            await self._checkpoint.started(call.id)
        return await bound.run(context)


def _is_json_object(arguments: str) -> bool:
    try:
        msgspec.json.decode(arguments or "{}", type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True
