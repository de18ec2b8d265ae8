"""Collects an answer while it is streamed, for every wire format."""

from msgspec import Struct

from hermes.core.models.prices import priced
from hermes.types.errors import Disconnected
from hermes.types.events import ReasoningDelta, SegmentEnded, TextDelta, UsageReported
from hermes.types.identity import CallId
from hermes.types.messages import AssistantMessage, CutReason, Echo, ToolCall
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

_Kind = type[TextDelta] | type[ReasoningDelta]


class PartialCall(Struct):
    """A tool call whose arguments are still arriving."""

    name: str = ""
    arguments: list[str] = []

    def whole(self, call: str, *, cut: bool) -> ToolCall:
        arguments = "".join(self.arguments) or "{}"
        return ToolCall(id=CallId(call), name=self.name, arguments=arguments, cut=cut)


class StreamedAnswer:
    """Collects the whole answer. Each call of `flush` emits the text since the previous call as one
    event."""

    def __init__(self, choice: ModelChoice, emit: Emit) -> None:
        self.choice = choice
        self.finished = False
        """Whether the model has reported the end of its answer. If the stream ends without this
        report, the connection was lost."""
        self.cut: CutReason = ""
        self.usage: UsageReported | None = None
        self.echo = b""
        """JSON that must be sent back to the provider with the results of the tools."""
        self._emit = emit
        self._heard: dict[_Kind, list[str]] = {TextDelta: [], ReasoningDelta: []}
        self._calls: list[PartialCall] = []
        self._fresh: list[str] = []
        self._kind: _Kind = TextDelta

    @property
    def parts(self) -> int:
        """Number of parts of the answer that have begun. The text counts as one part, and so does
        each call."""
        fresh = self._fresh if self._kind is TextDelta else []
        return len(self._calls) + any(map(str.strip, self._heard[TextDelta] + fresh))

    def say(self, text: str) -> None:
        if self._kind is not TextDelta:
            self._turn_to(TextDelta)
        self._fresh.append(text)

    def think(self, text: str) -> None:
        if self._kind is not ReasoningDelta:
            self._turn_to(ReasoningDelta)
        self._fresh.append(text)

    def call(self, name: str = "") -> PartialCall:
        """Adds a call. Calls that have no name by the end of the answer are dropped."""
        self._calls.append(PartialCall(name))
        return self._calls[-1]

    def flush(self) -> None:
        """Emits the text that was added since the last flush."""
        text = "".join(self._fresh)
        self._fresh.clear()
        if text:
            self._heard[self._kind].append(text)
            self._emit(self._kind(text=text))

    def message(self, step: str) -> AssistantMessage:
        """Returns the whole answer. Raises Disconnected if the stream ended before the answer was
        complete."""
        if not self.finished:
            raise Disconnected(
                f"{self.choice.provider} broke off in the middle of its answer; try again"
            )
        self.flush()
        if self.usage is not None:
            self._emit(priced(self.usage, self.choice.price))
        self._emit(SegmentEnded())
        named = (call for call in self._calls if call.name)
        # If the answer was cut off, all calls are marked as cut. Servers may write several calls at
        # the same time, so each of them may be incomplete.
        cut = bool(self.cut)
        calls = tuple(call.whole(f"{step}_{index}", cut=cut) for index, call in enumerate(named))
        return AssistantMessage(
            text="".join(self._heard[TextDelta]),
            reasoning="".join(self._heard[ReasoningDelta]),
            calls=calls,
            echo=self._echo() if calls and self.echo else None,
            cut=self.cut,
        )

    def _echo(self) -> Echo:
        return Echo(wire=self.choice.wire, model=self.choice.model, body=self.echo.decode())

    def _turn_to(self, kind: _Kind) -> None:
        self.flush()
        self._kind = kind
