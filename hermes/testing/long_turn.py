"""A turn of thirty steps. The fake model of this turn keeps no state, so the turn can continue with
a new model after a restart."""

from hermes.testing.scripted import Plan, PlannedCall
from hermes.types.events import SegmentEnded, TextDelta
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, ToolCall
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit

STEPS = 30
FILE = "notes.txt"
"""The file in the workspace that the tool calls of the turn read."""
ANSWER = "That was the last of thirty steps."


def _read(limit: int, path: str = FILE) -> PlannedCall:
    # Each call has a different `limit`, because the agent ends a turn that repeats identical calls.
    return PlannedCall("read_file", f'{{"path":"{path}","limit":{limit}}}')


def _append(token: str) -> PlannedCall:
    return PlannedCall("append", f'{{"token":"{token}"}}')


def _plan(step: int) -> Plan:
    """Returns the plan of a step. The steps have calls of different kinds: single and parallel,
    repeatable and not repeatable, valid and invalid."""
    token, limit = f"s{step}", step + 1
    match step % 6:
        case 0:
            return Plan(calls=(_append(token),), text=f"Step {step} changes something.")
        case 1:
            return Plan(calls=(_read(limit), _read(limit + 100), _read(limit + 200)))
        case 2:
            return Plan(calls=(_append(f"{token}a"), _append(f"{token}b")))
        case 3:
            return Plan(calls=(_read(limit, "missing.txt"), _read(limit)))
        case 4:
            return Plan(calls=(_read(limit), _append(token), _read(limit + 100)))
        case _:
            broken = (PlannedCall("nonsense"), PlannedCall("append", '{"tok'))
            return Plan(calls=(*broken, _append(token)), text=f"Step {step} goes wrong.")


PLANS = (*(_plan(step) for step in range(STEPS - 1)), Plan(text=ANSWER))
TOKENS = tuple(
    call.arguments[len('{"token":"') : -2]
    for plan in PLANS
    for call in plan.calls
    if call.name == "append" and call.arguments.endswith("}")
)
"""The lines that the turn must append, each exactly once."""


class LongModel:
    """A model whose answer depends only on the number of the requested step."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        self.requests.append(request)
        plan = PLANS[int(request.step.rpartition("_")[2])]
        text = plan.text or ""
        for word in text.split():
            emit(TextDelta(text=f"{word} "))
        emit(SegmentEnded())
        made = (
            ToolCall(id=CallId(f"{request.step}_{index}"), name=call.name, arguments=call.arguments)
            for index, call in enumerate(plan.calls)
        )
        return AssistantMessage(text=text, calls=tuple(made))
