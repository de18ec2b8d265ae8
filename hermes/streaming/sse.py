"""Renders a turn for HTTP clients: as chat completion chunks, as run events, or as one reply."""

from collections.abc import Sequence
from functools import cached_property
from typing import Literal, assert_never

from msgspec import UNSET
from msgspec.structs import replace

from hermes.streaming.final import answer_with_questions, end_remark, question_text
from hermes.streaming.fold import SEGMENT_SEPARATOR, View
from hermes.streaming.wire import (
    ApprovalRequest,
    AssistantReply,
    Choice,
    Chunk,
    ChunkChoice,
    ClientCall,
    CompactionUpdate,
    Completion,
    Delta,
    ErrorBody,
    ErrorChunk,
    FunctionCall,
    MessageDelta,
    NoticeEvent,
    NoticeUpdate,
    QuestionRequest,
    ReasoningText,
    RunCancelled,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunSuspended,
    SegmentDiscard,
    SegmentEnd,
    ToolEnd,
    ToolProgressText,
    ToolStart,
    ToolUpdate,
    Usage,
    UsageUpdate,
    encode,
    error_type,
)
from hermes.types.approvals import offered_grants
from hermes.types.events import (
    AgentEvent,
    ContextCompacted,
    FinishReason,
    Notice,
    QuestionAsked,
    ReasoningDelta,
    SegmentDiscarded,
    SegmentEnded,
    TextDelta,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnFinished,
    UsageReported,
)
from hermes.types.messages import ToolCall

KEEPALIVE = b": keepalive\n\n"
DONE = b"data: [DONE]\n\n"

ANSWER_PLACEHOLDER = b"\x7fanswer\x7f"
"""Placeholder for the text of the answer in rendered JSON. The text itself is sent in its place."""
RunStep = (
    TextDelta
    | ReasoningDelta
    | SegmentEnded
    | SegmentDiscarded
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | QuestionAsked
    | ContextCompacted
    | UsageReported
    | Notice
)
"""An event that does not end a run."""
StreamEnd = Literal["completed", "suspended", "stopped", "failed", "discarded"]


class ChatStream:
    """Renders the chunks of a streamed chat completion. Their contents add up to the answer."""

    def __init__(self, id: str, model: str, created: int, include_usage: bool) -> None:
        usage = None if include_usage else UNSET
        self._chunk = Chunk(id=id, created=created, model=model, usage=usage)
        self._text = _template(self._with(Delta(content="@")))
        self._usage: UsageReported | None = None
        self._end: StreamEnd | None = None
        self._said = False
        self._speaking = False
        self._held = ""
        self._text_seq = -1

    @cached_property
    def _reasoning(self) -> bytes:
        return _template(self._with(Delta(reasoning_content="@")))

    @property
    def end(self) -> StreamEnd | None:
        """How the stream ended; None while it is open."""
        return self._end

    def open(self) -> bytes:
        return b"data: %b\n\n" % encode(self._with(Delta(role="assistant", content="")))

    def feed(self, seq: int, event: AgentEvent) -> bytes:
        """Returns the bytes to send for the event; empty if the event is not shown or the stream
        has ended."""
        if self._speaking and type(event) is TextDelta:
            self._text_seq = seq
            return self._text % (seq, encode(event.text)) if event.text else b""
        return self._rendered(seq, event) if self._end is None else b""

    def fail(self, error: TurnFinished) -> bytes:
        """Ends the stream with an error that is not an event of the turn.

        The frame has no id, so a client that reconnects continues after the last event that it has
        received.
        """
        self._end_segment()
        self._end = "failed"
        return _failure(error.text, error.code, error.status)

    def _rendered(self, seq: int, event: AgentEvent) -> bytes:
        match event:
            case TextDelta(text=text):
                return self._begin(seq, text)
            case ReasoningDelta(text=text):
                return self._reasoning % (seq, encode(text))
            case SegmentEnded():
                self._end_segment()
            case SegmentDiscarded(from_seq=from_seq):
                return self._discard(seq, from_seq)
            case ToolStarted() | ToolFinished() | Notice():
                return self._update(seq, event)
            case QuestionAsked():
                self._end_segment()
                sent = self._begin(seq, question_text(event))
                self._end_segment()
                return sent
            case UsageReported():
                self._usage = event if self._usage is None else self._usage + event
            case TurnFinished():
                return self._finish(seq, event)
            case ToolProgress() | ContextCompacted():
                pass
            case _:
                assert_never(event)
        return b""

    def _begin(self, seq: int, text: str) -> bytes:
        """Begins a segment (the text of one model call) with its first visible text. White space
        before this text is held back until the text arrives."""
        text = self._held + text
        if not text.strip():
            self._held = text
            return b""
        pause = SEGMENT_SEPARATOR if self._said else ""
        self._said = self._speaking = True
        self._held, self._text_seq = "", seq
        return self._text % (seq, encode(pause + text))

    def _end_segment(self) -> None:
        self._speaking, self._held = False, ""

    def _discard(self, seq: int, from_seq: int) -> bytes:
        sent = self._speaking or self._text_seq >= from_seq
        self._end_segment()
        if not sent:
            return b""
        self._end = "discarded"
        message = "The answer was cut off and starts again: read the run's events, or ask again."
        return b"id: %d\n" % seq + _failure(message, "segment_discarded", 500)

    def _update(self, seq: int, event: ToolStarted | ToolFinished | Notice) -> bytes:
        name = "hermes.tool.progress"
        update: ToolUpdate | NoticeUpdate
        match event:
            case ToolStarted(call=call):
                update = ToolUpdate(
                    tool=event.name,
                    label=event.label,
                    arguments=event.arguments,
                    call=call,
                    status="running",
                )
            case ToolFinished(call=call):
                status: Literal["failed", "completed"] = "failed" if event.failed else "completed"
                update = ToolUpdate(
                    tool=event.name,
                    call=call,
                    status=status,
                    duration=round(event.seconds, 3),
                    result=event.result,
                )
            case Notice(text=text):
                name = "hermes.notice"
                update = NoticeUpdate(text=text)
            case _:
                assert_never(event)
        # OpenAI's clients ignore event names and read every event as a chunk. So this event must
        # also be a chunk, but without text.
        blank = encode(self._chunk).removesuffix(b"}")
        return _frame(seq, name, blank + b"," + encode(update)[1:])

    def _finish(self, seq: int, event: TurnFinished) -> bytes:
        self._end_segment()
        self._end = event.outcome
        if event.outcome == "failed":
            failure = _failure(end_remark(event), event.code or "agent_error", event.status)
            return b"id: %d\n" % seq + failure
        frames = b""
        if event.calls:
            called = encode(self._with(Delta(tool_calls=_numbered(event.calls))))
            frames += b"data: %b\n\n" % called
        last = encode(self._with(Delta(), finish_reason=event.finish_reason))
        frames += b"id: %d\ndata: %b\n\n" % (seq, last)
        if self._chunk.usage is None:
            usage = replace(self._chunk, choices=(), usage=Usage.of(self._usage))
            frames += b"data: %b\n\n" % encode(usage)
        return frames + DONE

    def _with(self, delta: Delta, finish_reason: FinishReason | None = None) -> Chunk:
        choice = ChunkChoice(delta=delta, finish_reason=finish_reason)
        return replace(self._chunk, choices=(choice,))


class RunStream:
    """Renders the events of a run, each with its number, name and run id."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id

    def feed(self, seq: int, event: RunStep) -> bytes:
        """Returns the server-sent event (frame) for an event that does not end the run."""
        return _run_frame(seq, self._run_event(event))

    def end(
        self, seq: int, event: TurnFinished, usage: UsageReported | None
    ) -> tuple[bytes, bytes]:
        """Returns the last frame in two halves. The caller sends the answer between them.

        The answer must be encoded as the content of a JSON string. If the run has failed, there is
        no answer, and the second half is empty.
        """
        frame = _run_frame(seq, self._finished(event, usage))
        if event.outcome == "failed":
            return frame, b""
        head, _, tail = frame.rpartition(ANSWER_PLACEHOLDER)
        return head, tail

    def _run_event(self, event: RunStep) -> RunEvent:
        run = self._run_id
        match event:
            case TextDelta(text=text):
                return MessageDelta(run_id=run, delta=text)
            case ReasoningDelta(text=text):
                return ReasoningText(run_id=run, delta=text)
            case ToolStarted() | ToolProgress() | ToolFinished():
                return _tool_event(run, event)
            case QuestionAsked():
                return _question_event(run, event)
            case (
                SegmentEnded()
                | SegmentDiscarded()
                | ContextCompacted()
                | UsageReported()
                | Notice()
            ):
                return _other_event(run, event)
            case _:
                assert_never(event)

    def _finished(self, event: TurnFinished, usage: UsageReported | None) -> RunEvent:
        run, output = self._run_id, ANSWER_PLACEHOLDER.decode()
        match event.outcome:
            case "completed":
                return RunCompleted(
                    run_id=run,
                    output=output,
                    usage=Usage.of(usage),
                    finish_reason=event.finish_reason,
                )
            case "suspended":
                calls = tuple(map(_client_call, event.calls)) or UNSET
                return RunSuspended(run_id=run, output=output, tool_calls=calls)
            case "stopped":
                return RunCancelled(run_id=run, reason=event.text, output=output)
            case "failed":
                return RunFailed(
                    run_id=run, error=end_remark(event), code=event.code or "agent_error"
                )
            case _:
                assert_never(event.outcome)


def plain_completion(id: str, model: str, created: int, view: View) -> bytes:
    """Returns the reply to a request without streaming."""
    text, end = answer_with_questions(view), view.outcome
    reply = AssistantReply(content=text)
    if end is not None and end.calls:
        calls = tuple(map(_client_call, end.calls))
        reply = AssistantReply(content=text or None, tool_calls=calls)
    choice = Choice(message=reply, finish_reason=end.finish_reason if end else "stop")
    usage = Usage.of(view.usage)
    return encode(Completion(id=id, created=created, model=model, choices=(choice,), usage=usage))


def _client_call(call: ToolCall) -> ClientCall:
    arguments = call.arguments or "{}"
    return ClientCall(id=call.id, function=FunctionCall(name=call.name, arguments=arguments))


def _numbered(calls: Sequence[ToolCall]) -> tuple[ClientCall, ...]:
    return tuple(replace(_client_call(call), index=index) for index, call in enumerate(calls))


def _tool_event(run: str, event: ToolStarted | ToolProgress | ToolFinished) -> RunEvent:
    match event:
        case ToolStarted(call=call, name=name, label=label, arguments=arguments):
            return ToolStart(
                run_id=run, tool=name, tool_call_id=call, label=label, arguments=arguments
            )
        case ToolProgress(call=call, text=text):
            return ToolProgressText(run_id=run, tool_call_id=call, text=text)
        case ToolFinished(call=call, name=name, failed=failed):
            return ToolEnd(
                run_id=run,
                tool=name,
                tool_call_id=call,
                duration=round(event.seconds, 3),
                error=failed,
                result=event.result,
            )
        case _:
            assert_never(event)


def _question_event(run: str, event: QuestionAsked) -> RunEvent:
    if event.kind == "question":
        return QuestionRequest(run_id=run, id=event.id, prompt=event.prompt, choices=event.choices)
    return ApprovalRequest(
        run_id=run,
        id=event.id,
        prompt=event.prompt,
        detail=event.detail,
        reason=event.reason,
        choices=(*offered_grants(event.choices), "deny"),
        expires_at=int(event.expires_at),
    )


def _other_event(
    run: str,
    event: SegmentEnded | SegmentDiscarded | ContextCompacted | UsageReported | Notice,
) -> RunEvent:
    match event:
        case SegmentEnded():
            return SegmentEnd(run_id=run)
        case SegmentDiscarded(from_seq=from_seq):
            return SegmentDiscard(run_id=run, from_seq=from_seq)
        case ContextCompacted(messages=messages):
            return CompactionUpdate(run_id=run, messages=messages)
        case UsageReported():
            return UsageUpdate(run_id=run, usage=Usage.of(event))
        case Notice(text=text):
            return NoticeEvent(run_id=run, text=text)
        case _:
            assert_never(event)


def _template(chunk: Chunk) -> bytes:
    """Makes a template from a chunk whose text is "@". The number of the event and the text are
    filled in later."""
    head, _, tail = encode(chunk).replace(b"%", b"%%").rpartition(b'"@"')
    return b"id: %%d\ndata: %b%%b%b\n\n" % (head, tail)


def _frame(seq: int, name: str, data: bytes) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (seq, name.encode(), data)


def _run_frame(seq: int, event: RunEvent) -> bytes:
    return _frame(seq, str(event.__struct_config__.tag), encode(event))


def _failure(message: str, code: str, status: int) -> bytes:
    problem = ErrorBody(message=message, code=code, type=error_type(status))
    return b"data: %b\n\n" % encode(ErrorChunk(error=problem)) + DONE
