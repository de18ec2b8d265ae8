"""One tool call, from the model's JSON to a result that is kept."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from hermes.core.tools.results import Results, hidden
from hermes.types.errors import ClaimLost, StoreUnavailable, ToolFailed
from hermes.types.events import ToolFinished, ToolProgress, ToolStarted
from hermes.types.identity import CallId
from hermes.types.messages import ToolCall, ToolMessage
from hermes.types.protocols import Checkpoint, Emit
from hermes.types.tools import NeedsPerson, Process, Tool
from hermes.types.turns import Decision, Turn

log = logging.getLogger(__name__)

UNKNOWN_OUTCOME = (
    "Outcome unknown: the gateway restarted while this ran. It may or may not have taken effect;"
    " it was not run again. Check before you repeat it."
)
LABEL = 80
PROGRESS = 200
"""Characters of a line that tells how far a call has come."""
FAULT = 1000
"""Characters of what a tool broke with."""


class CallContext:
    """What a running tool may know and ask for."""

    def __init__(
        self,
        turn: Turn,
        call: CallId,
        emit: Emit,
        checkpoint: Checkpoint,
        hide: Callable[[str], str] = str,
    ) -> None:
        self.turn = turn
        self.call = call
        self._emit = emit
        self._checkpoint = checkpoint
        self.hide = hide

    @property
    def workspace(self) -> Path:
        return Path(self.turn.profile.workspace)

    @property
    def decision(self) -> Decision | None:
        return self.turn.decisions.get(self.call)

    async def running(self, process: Process) -> None:
        await self._checkpoint.started(self.call, process)

    def progress(self, text: str) -> None:
        self._emit(ToolProgress(call=self.call, text=self.hide(text)[:PROGRESS]))


class CallRunner:
    """Runs the calls of one turn."""

    def __init__(
        self,
        turn: Turn,
        tools: Mapping[str, Tool],
        emit: Emit,
        checkpoint: Checkpoint,
        results: Results,
    ) -> None:
        self._results = results
        self._turn = turn
        self._tools = tools
        self._emit = emit
        self._checkpoint = checkpoint

    def read_only(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is not None and tool.read_only

    async def run(self, call: ToolCall) -> ToolMessage:
        """The call's result, checkpointed. Raises NeedsPerson when it has to wait for one."""
        self._emit(ToolStarted(call=call.id, name=call.name, label=_label(call)))
        since = time.monotonic()
        try:
            text, failed = await self._result(call), False
        except ToolFailed as error:
            text, failed = str(error), True
        except (NeedsPerson, ClaimLost, StoreUnavailable):
            raise
        except Exception as error:
            log.exception("the tool %s broke", call.name)
            fault = hidden(f"{type(error).__name__}: {error}", self._results.hide, FAULT)
            text, failed = f"The tool failed: {fault}", True
        result = ToolMessage(
            call=call.id, text=await self._results.fit(self._turn, call.id, text), failed=failed
        )
        seconds = round(time.monotonic() - since, 3)
        self._emit(
            ToolFinished(call=call.id, name=call.name, seconds=seconds, failed=result.failed)
        )
        await self._checkpoint.answered(result)
        return result

    async def _result(self, call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(self._tools)) or "none"
            raise ToolFailed(f"There is no tool {call.name!r}. The tools are: {known}.")
        try:
            arguments = msgspec.json.decode(call.arguments or "{}", type=tool.arguments)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ToolFailed(f"The arguments of {call.name} are not valid: {error}.") from error
        if not tool.repeatable:
            if call.id in self._turn.interrupted:
                raise ToolFailed(UNKNOWN_OUTCOME)
            await self._checkpoint.started(call.id)
        hide = self._results.hide
        context = CallContext(self._turn, call.id, self._emit, self._checkpoint, hide)
        return await tool.handler(context, arguments)


def _flat(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else (value,)


def _label(call: ToolCall) -> str:
    """The call's first text: the path, the command, the question, the first of its URLs."""
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ""
    values = (one for value in arguments.values() for one in _flat(value))
    first = next((value for value in values if isinstance(value, str)), "")
    line = first.splitlines()[0] if first else ""
    return line if len(line) <= LABEL else line[: LABEL - 1] + "…"
