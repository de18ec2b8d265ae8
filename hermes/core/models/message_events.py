"""Parses the stream events of Anthropic's Messages API."""

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import astuple

from hermes.core.models.finish_reasons import cut_by
from hermes.core.models.provider_errors import ProviderProblem, interruption
from hermes.core.models.reasoning import ReasoningPart, encode_reasoning
from hermes.types.events import UsageReported
from hermes.types.models import AnswerBuilder, CallBuilder


class _Block(Struct):
    """The beginning of a content block, or the whole block if the answer is not streamed."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    name: str | None = None
    input: dict[str, Raw] | None = None


class _Delta(Struct):
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens: int | None = None

    def updated(self, later: "_Usage") -> "_Usage":
        """Returns the usage, updated with later figures. The figures are totals, not increments."""
        figures = zip(astuple(self), astuple(later), strict=True)
        return _Usage(*(old if new is None else new for old, new in figures))

    def reported(self) -> UsageReported:
        cached = self.cache_read_input_tokens or 0
        return UsageReported(
            prompt_tokens=(self.input_tokens or 0)
            + cached
            + (self.cache_creation_input_tokens or 0),
            completion_tokens=self.output_tokens or 0,
            cached_tokens=cached,
        )


class _Message(Struct):
    usage: _Usage | None = None


class _Event(Struct):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: ProviderProblem | str | None = None
    content: list[_Block] | None = None
    """The blocks of a message that is not streamed; None for the events of a stream. If the blocks
    are set, `stop_reason` is set, too."""
    stop_reason: str | None = None


class _Thinking(Struct, tag_field="type", tag="thinking"):
    thinking: str
    signature: str


class _Redacted(Struct, tag_field="type", tag="redacted_thinking"):
    data: str


_events = msgspec.json.Decoder(_Event)
_encoder = msgspec.json.Encoder()


class _OpenThought(Struct):
    at: int
    thinking: list[str] = []
    signature: list[str] = []
    data: str | None = None

    def closed(self) -> ReasoningPart:
        part = _Thinking("".join(self.thinking), "".join(self.signature))
        return ReasoningPart(
            self.at, Raw(_encoder.encode(_Redacted(self.data) if self.data else part))
        )


class MessageEvents:
    """Parses events, or a whole message, into an answer."""

    def __init__(self, answer: AnswerBuilder) -> None:
        self._answer = answer
        self._calls: dict[int, CallBuilder] = {}
        self._thoughts: dict[int, _OpenThought] = {}
        self._usage: _Usage | None = None

    def take(self, payload: bytes) -> None:
        event = _events.decode(payload)
        match event:
            case _Event(type="content_block_delta", delta=_Delta() as delta):
                self._hear(event.index, delta)
            case _Event(type="content_block_start", content_block=_Block() as block):
                self._begin(event.index, block)
            case _Event(type="message_start", message=_Message(usage=usage)):
                self._count(usage)
            case _Event(type="message_delta", delta=_Delta(stop_reason=str(why)), usage=usage):
                self._count(usage)
                self._finish(why)
            case _Event(type="message"):
                for index, block in enumerate(event.content or ()):
                    self._begin(index, block)
                self._count(event.usage)
                self._finish(event.stop_reason)
            case _Event(error=ProviderProblem() | str() as problem) if not self._answer.finished:
                raise interruption(self._answer.choice, problem)

    def _begin(self, index: int, block: _Block) -> None:
        match block.type:
            case "text":
                self._hear(index, _Delta(text=block.text))
            case "tool_use":
                self._calls[index] = self._answer.call(block.name or "")
                if block.input:
                    written = _encoder.encode(block.input).decode()
                    self._calls[index].arguments.append(written)
            case "thinking" | "redacted_thinking":
                self._thoughts[index] = _OpenThought(self._answer.parts, data=block.data)
                self._hear(index, _Delta(thinking=block.thinking, signature=block.signature))

    def _hear(self, index: int, delta: _Delta) -> None:
        if delta.text:
            self._answer.say(delta.text)
        elif delta.partial_json and index in self._calls:
            self._calls[index].arguments.append(delta.partial_json)
        elif delta.thinking and index in self._thoughts:
            self._answer.think(delta.thinking)
            self._thoughts[index].thinking.append(delta.thinking)
        if delta.signature and index in self._thoughts:
            self._thoughts[index].signature.append(delta.signature)

    def _count(self, usage: _Usage | None) -> None:
        if usage is not None:
            self._usage = usage if self._usage is None else self._usage.updated(usage)
            self._answer.usage = self._usage.reported()

    def _finish(self, reason: str | None) -> None:
        self._answer.finished = True
        self._answer.cut = cut_by(reason)
        self._answer.echo = encode_reasoning(
            [thought.closed() for thought in self._thoughts.values()]
        )
