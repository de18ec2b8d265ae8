"""Parses the stream events of OpenAI's Responses API."""

import msgspec
from msgspec import Raw, Struct

from hermes.core.models.finish_reasons import cut_by
from hermes.core.models.provider_errors import ProviderProblem, interruption
from hermes.core.models.reasoning import ReasoningPart, encode_reasoning
from hermes.types.events import UsageReported
from hermes.types.models import AnswerBuilder, CallBuilder


class _Part(Struct):
    text: str | None = None
    refusal: str | None = None


class _Item(Struct):
    """A part of the output: a message, a call, or reasoning."""

    type: str = ""
    id: str | None = None
    name: str | None = None
    arguments: str | None = None
    content: list[_Part] | None = None
    summary: list[_Part] | None = None
    encrypted_content: str | None = None

    @property
    def thoughts(self) -> list[str]:
        return [part.text or "" for part in self.summary or ()]


class _Details(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None

    def reported(self) -> UsageReported:
        details = self.input_tokens_details or _Details()
        return UsageReported(
            prompt_tokens=self.input_tokens or 0,
            completion_tokens=self.output_tokens or 0,
            cached_tokens=details.cached_tokens or 0,
        )


class _Incomplete(Struct):
    reason: str | None = None


class _Response(Struct):
    incomplete_details: _Incomplete | None = None
    status: str | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None
    error: ProviderProblem | None = None


class _Event(Struct):
    type: str = ""
    delta: str = ""
    output_index: int = 0
    summary_index: int = 0
    item: _Item | None = None
    response: _Response | None = None
    error: ProviderProblem | str | None = None
    message: str | None = None
    code: str | int | None = None


class _Summary(Struct, tag_field="type", tag="summary_text"):
    text: str


class _Reasoning(Struct, tag_field="type", tag="reasoning"):
    id: str
    summary: list[_Summary]
    encrypted_content: str


_events = msgspec.json.Decoder(_Event)
_responses = msgspec.json.Decoder(_Response)
_encoder = msgspec.json.Encoder()


class ResponseEvents:
    """Parses events, or a whole response, into an answer."""

    def __init__(self, answer: AnswerBuilder) -> None:
        self._answer = answer
        self._calls: dict[int, CallBuilder] = {}
        self._places: dict[int, int] = {}
        self._thoughts: list[ReasoningPart] = []

    def take(self, payload: bytes) -> None:
        event = _events.decode(payload)
        match event.type:
            case "response.output_text.delta" | "response.refusal.delta":
                self._say(event.delta, refuses=event.type == "response.refusal.delta")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._answer.think(event.delta)
            case "response.reasoning_summary_part.added" if event.summary_index:
                self._answer.think("\n\n")
            case "response.output_item.added" if event.item is not None:
                self._begin(event.output_index, event.item)
            case "response.output_item.done" if event.item is not None:
                self._end(event.output_index, event.item)
            case "response.function_call_arguments.delta" if event.output_index in self._calls:
                self._calls[event.output_index].arguments.append(event.delta)
            case "response.completed" | "response.incomplete" | "response.failed":
                response = event.response or _Response()
                response.status = event.type.removeprefix("response.")
                self._finish(response)
            case "error" if not self._answer.finished:
                problem = event.error or ProviderProblem(event.message, event.code)
                raise interruption(self._answer.choice, problem)
            case "":
                self._whole(_responses.decode(payload))

    def _say(self, text: str, *, refuses: bool) -> None:
        self._answer.say(text)
        if refuses:
            self._answer.cut = "content_filter"

    def _begin(self, index: int, item: _Item) -> None:
        match item.type:
            case "function_call":
                self._calls[index] = self._answer.call(item.name or "")
            case "reasoning":
                self._places[index] = self._answer.parts

    def _end(self, index: int, item: _Item) -> None:
        match item:
            case _Item(type="function_call", arguments=str(arguments)) if index in self._calls:
                self._calls[index].arguments = [arguments]
            case _Item(type="reasoning", encrypted_content=str(sealed)) if index in self._places:
                reasoning = _Reasoning(item.id or "", list(map(_Summary, item.thoughts)), sealed)
                part = Raw(_encoder.encode(reasoning))
                self._thoughts.append(ReasoningPart(self._places[index], part))

    def _whole(self, response: _Response) -> None:
        for index, item in enumerate(response.output or ()):
            self._begin(index, item)
            written = "".join(part.text or part.refusal or "" for part in item.content or ())
            if item.type == "reasoning":
                self._answer.think("\n\n".join(item.thoughts) or written)
            else:
                self._say(written, refuses=any(part.refusal for part in item.content or ()))
            self._end(index, item)
        self._finish(response)

    def _finish(self, response: _Response) -> None:
        if response.error is not None and not self._answer.finished:
            raise interruption(self._answer.choice, response.error)
        if response.usage is not None:
            self._answer.usage = response.usage.reported()
        # An answer that reached a limit is finished, too.
        self._answer.finished |= response.status in ("completed", "incomplete")
        if response.status == "incomplete":
            details = response.incomplete_details or _Incomplete()
            self._answer.cut = cut_by(details.reason) or "length"
        self._answer.echo = encode_reasoning(self._thoughts)
