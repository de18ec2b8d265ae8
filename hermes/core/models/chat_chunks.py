"""Parses the chunks of a chat completion, in all variants that servers send."""

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from hermes.core.models.finish_reasons import cut_by
from hermes.core.models.provider_errors import ProviderProblem, interruption
from hermes.types.events import UsageReported
from hermes.types.models import AnswerBuilder, CallBuilder


class ChatEcho(Struct, omit_defaults=True):
    """Fields of an answer with tool calls. Later requests must send them back to the server
    unchanged."""

    reasoning_content: str | UnsetType = UNSET
    """The reasoning of the answer. A server that sends this field, even if it is empty, refuses
    later requests without the field."""
    extra_content: dict[int, dict[str, Raw]] = {}
    """Additional data of each call, by the index of the call. Some servers use it to sign the
    call."""


class _Function(Struct, frozen=True):
    name: str | None = None
    arguments: str | dict[str, Raw] | None = None


class _CallPiece(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function = _Function()
    extra_content: dict[str, Raw] | None = None


class _Part(Struct):
    """One part of a `content` that is a list. The part is either text, or reasoning, which is again
    a list of parts."""

    text: str = ""
    thinking: list["_Part"] = []


# The garbage collector does not track the parts of a chunk, because they never form a cycle.
class _Delta(Struct, gc=False):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(Struct, gc=False):
    delta: _Delta | None = None
    message: _Delta | None = None
    """The whole answer, if the server does not stream; None in the chunks of a stream."""
    finish_reason: str | None = None


class _Details(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    prompt_cache_hit_tokens: int | None = None
    """Another name for `cached_tokens`, which some servers use."""
    cost: float | None = None
    """The cost in dollars; None if the server does not report it."""

    def reported(self) -> UsageReported:
        details = self.prompt_tokens_details or _Details()
        return UsageReported(
            prompt_tokens=self.prompt_tokens or 0,
            completion_tokens=self.completion_tokens or 0,
            cached_tokens=details.cached_tokens or self.prompt_cache_hit_tokens or 0,
            cost=self.cost,
        )


class _Chunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: ProviderProblem | str | None = None


_chunks = msgspec.json.Decoder(_Chunk)
_encoder = msgspec.json.Encoder()


class Chunks:
    """Parses chunks, or a whole completion, into an answer."""

    def __init__(self, answer: AnswerBuilder) -> None:
        self._answer = answer
        self._calls: list[_OpenCall] = []
        self._reasoning: list[str] | None = None

    def take(self, payload: bytes) -> None:
        chunk = _chunks.decode(payload)
        if chunk.error is not None and not self._answer.finished:
            raise interruption(self._answer.choice, chunk.error)
        if chunk.usage is not None:
            self._answer.usage = chunk.usage.reported()
        for choice in chunk.choices or ():
            if choice.delta is not None:
                self._hear(choice.delta)
            elif choice.message is not None:
                self._hear(choice.message)
                self._finish(choice.finish_reason)
                continue
            # A router passes calls on to other providers. If such a provider fails, the router ends
            # the answer with `error`, although the answer is not finished.
            if choice.finish_reason not in (None, "", "error"):
                self._finish(choice.finish_reason)

    def _hear(self, delta: _Delta) -> None:
        if delta.reasoning_content is not None:
            self._reasoning = self._reasoning or []
            self._reasoning.append(delta.reasoning_content)
        if thought := delta.reasoning_content or delta.reasoning:
            self._answer.think(thought)
        if delta.refusal:
            self._answer.cut = "content_filter"
        if content := delta.content or delta.refusal:
            if isinstance(content, str):
                self._answer.say(content)
            else:
                self._hear_parts(content)
        for piece in delta.tool_calls or ():
            self._call(piece).add(piece)

    def _hear_parts(self, parts: list[_Part]) -> None:
        for part in parts:
            for thought in part.thinking:
                self._answer.think(thought.text)
            self._answer.say(part.text)

    def _call(self, piece: _CallPiece) -> "_OpenCall":
        """Returns the call that the piece continues, or a new call."""
        for call in reversed(self._calls):
            if call.continues(piece):
                return call
        self._calls.append(_OpenCall(piece.index, piece.id, self._answer.call()))
        return self._calls[-1]

    def _finish(self, reason: str | None) -> None:
        self._answer.finished = True
        self._answer.cut = cut_by(reason) or self._answer.cut
        named = (call for call in self._calls if call.partial.name)
        extra = {index: call.extra for index, call in enumerate(named) if call.extra}
        if self._reasoning is not None or extra:
            said = UNSET if self._reasoning is None else "".join(self._reasoning)
            self._answer.echo = _encoder.encode(ChatEcho(said, extra))


class _OpenCall(Struct):
    index: int | None
    provider_id: str | None
    partial: CallBuilder
    extra: dict[str, Raw] | None = None

    def continues(self, piece: _CallPiece) -> bool:
        named = bool(piece.function.name)
        if piece.index is None:
            return piece.id == self.provider_id if piece.id else not named
        if piece.index != self.index:
            return False
        # The index alone does not identify a call, because some servers give every call the index
        # 0. The id alone does not identify it either, because other servers give every piece a new
        # id.
        return not (named and piece.id and self.provider_id and piece.id != self.provider_id)

    def add(self, piece: _CallPiece) -> None:
        self.partial.name = self.partial.name or piece.function.name or ""
        self.extra = piece.extra_content or self.extra
        match piece.function.arguments:
            case str(text):
                self.partial.arguments.append(text)
            case dict(fields):
                self.partial.arguments.append(_encoder.encode(fields).decode())
