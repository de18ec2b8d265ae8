"""A turn is rendered for HTTP clients."""

import json
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from hermes.streaming.final import answer_with_questions
from hermes.streaming.fold import EventFold, View, answer
from hermes.streaming.sse import (
    ANSWER_PLACEHOLDER,
    DONE,
    KEEPALIVE,
    ChatStream,
    RunStep,
    RunStream,
    plain_completion,
)
from hermes.streaming.wire import encode
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
from hermes.types.identity import CallId
from hermes.types.messages import ToolCall

CALL = CallId("t_0_0")
COMPLETED = TurnFinished(outcome="completed")
SUSPENDED = TurnFinished(outcome="suspended")
ARGUMENTS = '{"path":"notes.txt"}'
STARTED = ToolStarted(call=CALL, name="read_file", label="notes.txt", arguments=ARGUMENTS)
FINISHED = ToolFinished(call=CALL, name="read_file", seconds=0.1234, result="a note")
QUESTION = QuestionAsked(
    id="a7",
    call=CALL,
    kind="approval",
    prompt="Run it?",
    choices=("Once", "Always"),
    detail="make all",
    reason="builds everything",
    expires_at=9.5,
)
USAGE = UsageReported(prompt_tokens=10, completion_tokens=3)
FRAME = re.compile(r"(?:id: (\d+)\n)?(?:event: (\S+)\n)?data: (.*)\n\n")

Frame = tuple[str, str, Any]

speech: st.SearchStrategy[AgentEvent] = st.one_of(
    st.builds(TextDelta, text=st.text(max_size=8)),
    st.builds(TextDelta, text=st.text(alphabet=' \n"@%é\u2028', max_size=3)),
    st.builds(ReasoningDelta, text=st.text()),
    st.just(SegmentEnded()),
    st.builds(ToolStarted, call=st.just(CALL), name=st.just("read_file"), label=st.text()),
    st.builds(ToolProgress, call=st.just(CALL), text=st.text()),
    st.builds(ToolFinished, call=st.just(CALL), name=st.just("read_file")),
    st.builds(ContextCompacted, messages=st.integers(0, 9)),
    st.just(USAGE),
    st.builds(Notice, text=st.text()),
)


def says(text: str) -> TextDelta:
    return TextDelta(text=text)


def chat(include_usage: bool = False) -> ChatStream:
    return ChatStream(id="chatcmpl-1", model='odd "@" 100%', created=7, include_usage=include_usage)


def sent(events: Iterable[AgentEvent], stream: ChatStream | None = None) -> bytes:
    stream = stream or chat()
    return stream.open() + b"".join(stream.feed(n, event) for n, event in enumerate(events, 1))


def frames(data: bytes) -> list[Frame]:
    """Parses the events of a stream. Fails if the stream contains anything else."""
    text = data.decode()
    found = list(FRAME.finditer(text))
    assert "".join(match.group() for match in found) == text
    return [
        (number or "", name or "", body if body == "[DONE]" else json.loads(body))
        for number, name, body in (match.groups() for match in found)
    ]


def content(data: bytes) -> str:
    chunks = [body for _, _, body in frames(data) if body != "[DONE]" and "choices" in body]
    return "".join(
        choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]
    )


def folded(events: Iterable[AgentEvent]) -> View:
    fold = EventFold()
    for seq, event in enumerate(events, 1):
        fold.feed(seq, event)
    return fold.view()


@given(st.lists(speech), st.booleans())
def test_the_contents_of_all_chunks_are_the_whole_answer(
    events: list[AgentEvent], include_usage: bool
) -> None:
    events = [*events, COMPLETED]
    assert content(sent(events, chat(include_usage))) == answer(folded(events))


@given(st.lists(speech), st.integers(0, 2))
def test_the_contents_of_a_suspended_turn_end_with_its_questions(
    events: list[AgentEvent], count: int
) -> None:
    questions = [
        QuestionAsked(id=f"q{n}", call=CallId(f"q_{n}"), kind="question", prompt="Which?")
        for n in range(count)
    ]
    events = [*events, *questions, SUSPENDED]
    assert content(sent(events)) == answer_with_questions(folded(events))


@given(st.lists(speech), st.booleans())
def test_every_chunk_has_the_type_of_openai_s_package(
    events: list[AgentEvent], include_usage: bool
) -> None:
    data = sent([*events, COMPLETED], chat(include_usage))
    for _, _, body in frames(data)[:-1]:
        chunk = ChatCompletionChunk.model_validate(body)
        assert chunk.id == "chatcmpl-1"
        assert chunk.model == 'odd "@" 100%'
        assert ("usage" in body) == include_usage


def test_a_streamed_answer_has_a_role_text_a_finish_reason_and_an_end() -> None:
    data = sent([says("Hel"), says("lo"), SegmentEnded(), COMPLETED])
    numbers = [number for number, _, _ in frames(data)]
    deltas = [body["choices"][0] for _, _, body in frames(data)[:-1]]
    assert numbers == ["", "1", "2", "4", ""]
    assert deltas == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None},
        {"index": 0, "delta": {"content": "Hel"}, "finish_reason": None},
        {"index": 0, "delta": {"content": "lo"}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    assert data.endswith(DONE)


@pytest.mark.parametrize("reason", ["length", "content_filter", "tool_calls"])
def test_the_finish_reason_is_that_of_the_model(reason: FinishReason) -> None:
    end = TurnFinished(outcome="completed", finish_reason=reason)
    events: list[AgentEvent] = [says("Once"), SegmentEnded(), end]
    _, _, last = frames(sent(events))[-2]
    assert ChatCompletionChunk.model_validate(last).choices[0].finish_reason == reason
    reply = plain_completion("chatcmpl-1", "main", 7, folded(events))
    assert ChatCompletion.model_validate_json(reply).choices[0].finish_reason == reason
    halves = RunStream("run_1").end(5, end, None)
    assert frames(b"".join(halves))[0][2]["finish_reason"] == reason


def test_client_calls_can_not_change_the_place_of_the_answer() -> None:
    arguments = json.dumps({"at": ANSWER_PLACEHOLDER.decode()})
    call = ToolCall(id=CallId("t_0_0"), name="look", arguments=arguments)
    end = TurnFinished(outcome="suspended", calls=(call,))
    head, tail = RunStream("run_1").end(5, end, None)
    _, _, told = frames(head + b"the answer" + tail)[0]
    assert told["output"] == "the answer"
    assert told["tool_calls"][0]["function"]["arguments"] == arguments


def test_usage_is_sent_before_the_end_if_it_is_requested() -> None:
    data = sent([USAGE, says("Hi"), USAGE, COMPLETED], chat(include_usage=True))
    *_, (_, _, usage), (_, _, done) = frames(data)
    assert usage["choices"] == []
    assert usage["usage"] == {"prompt_tokens": 20, "completion_tokens": 6, "total_tokens": 26}
    assert done == "[DONE]"


def test_reasoning_has_a_field_of_its_own() -> None:
    (_, _, body) = frames(chat().feed(1, ReasoningDelta(text="hm")))[0]
    assert body["choices"][0]["delta"] == {"reasoning_content": "hm"}


def test_tools_and_notices_are_named_events() -> None:
    stream = chat()
    failed = ToolFinished(call=CALL, name="read_file", failed=True)
    events: tuple[AgentEvent, ...] = (STARTED, FINISHED, failed, Notice(text="slow"))
    told = [frames(stream.feed(n, event))[0] for n, event in enumerate(events)]
    assert [name for _, name, _ in told] == ["hermes.tool.progress"] * 3 + ["hermes.notice"]
    fields = ("tool", "label", "arguments", "toolCallId", "status", "duration", "result", "text")
    assert [{key: body[key] for key in fields if key in body} for _, _, body in told] == [
        {
            "tool": "read_file",
            "label": "notes.txt",
            "arguments": ARGUMENTS,
            "toolCallId": "t_0_0",
            "status": "running",
        },
        {
            "tool": "read_file",
            "toolCallId": "t_0_0",
            "status": "completed",
            "duration": 0.123,
            "result": "a note",
        },
        {
            "tool": "read_file",
            "toolCallId": "t_0_0",
            "status": "failed",
            "duration": 0.0,
            "result": "",
        },
        {"text": "slow"},
    ]


def test_a_question_is_sent_as_content_and_ends_the_stream() -> None:
    stream = chat()
    data = sent([says("Let me see."), SegmentEnded(), STARTED, QUESTION, SUSPENDED], stream)
    assert content(data) == (
        "Let me see.\n\nRun it?\nAnswer with /approve a7 or /deny a7."
        " For longer: /approve a7 session, or /approve a7 always."
    )
    assert frames(data)[-2][2]["choices"][0]["finish_reason"] == "stop"
    assert stream.end == "suspended"


def test_a_stopped_turn_has_the_finish_reason_stop() -> None:
    stream = chat()
    data = sent([says("Hel"), TurnFinished(outcome="stopped", text="/stop")], stream)
    assert frames(data)[-2][2]["choices"][0]["finish_reason"] == "stop"
    assert stream.end == "stopped"


def test_a_failed_turn_ends_with_an_error() -> None:
    stream = chat()
    failed = TurnFinished(outcome="failed", text="Busy.", code="rate_limited", status=429)
    data = sent([says("Hel"), failed], stream)
    assert frames(data)[-2][2] == {
        "error": {"message": "Busy.", "code": "rate_limited", "type": "rate_limit_error"}
    }
    assert data.endswith(DONE)
    assert stream.end == "failed"


def test_an_error_that_is_not_an_event_has_no_id() -> None:
    stream = chat()
    failed = TurnFinished(outcome="failed", text="Later.", code="gateway_restarting", status=503)
    data = sent([says("Hel")], stream) + stream.fail(failed)
    assert frames(data)[-2] == (
        "",
        "",
        {"error": {"message": "Later.", "code": "gateway_restarting", "type": "server_error"}},
    )
    assert data.endswith(DONE)
    assert stream.end == "failed"
    assert stream.feed(2, says("more")) == b""


def test_a_discard_of_text_that_was_sent_ends_the_stream_with_an_error() -> None:
    stream = chat()
    data = sent([says("Hel"), SegmentDiscarded(from_seq=1), says("Hi"), COMPLETED], stream)
    assert frames(data)[-2][2]["error"]["code"] == "segment_discarded"
    assert content(data) == "Hel"
    assert stream.end == "discarded"


def test_a_discard_of_an_ended_segment_also_ends_the_stream() -> None:
    stream = chat()
    sent([says("Hello"), SegmentEnded(), SegmentDiscarded(from_seq=1)], stream)
    assert stream.end == "discarded"


def test_a_discard_of_text_that_was_not_sent_is_not_reported() -> None:
    stream = chat()
    events: list[AgentEvent] = [
        says("One"),
        SegmentEnded(),
        says("\n"),
        SegmentDiscarded(from_seq=3),
        says("Two"),
    ]
    assert content(sent(events, stream)) == "One\n\nTwo"
    assert stream.end is None


def test_nothing_follows_the_end() -> None:
    stream = chat()
    sent([says("Hi"), COMPLETED], stream)
    assert stream.feed(3, says("more")) == b""
    assert stream.feed(4, COMPLETED) == b""


def test_lone_surrogates_do_not_break_the_stream() -> None:
    assert content(sent([says("a\ud800"), says("\udcffb"), COMPLETED])) == "a??b"
    stream = chat()
    assert stream.feed(1, ToolStarted(call=CALL, name="read_file", label="\udcff.txt"))


@contextmanager
def serving(data: bytes) -> Iterator[str]:
    """Runs a server that answers every request with `data`. Yields its base URL."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def read_by_openai(data: bytes) -> str:
    http = openai.DefaultHttpxClient(trust_env=False)
    with serving(data) as url, openai.OpenAI(api_key="k", base_url=url, http_client=http) as client:
        stream = client.chat.completions.create(
            model="main", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        # Like most programs, this code reads the first choice without checking that it exists. So
        # every chunk must have a choice.
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream)


def test_openai_s_client_accepts_tool_events_notices_and_keepalives() -> None:
    events: list[AgentEvent] = [
        says("One"),
        SegmentEnded(),
        STARTED,
        Notice(text="n"),
        FINISHED,
        says("Two"),
    ]
    data = KEEPALIVE + sent([*events, COMPLETED])
    assert read_by_openai(data) == "One\n\nTwo"


def test_openais_client_raises_our_error() -> None:
    data = sent([says("Hel"), TurnFinished(outcome="failed", text="Busy.")])
    with pytest.raises(openai.APIError, match=r"Busy\."):
        read_by_openai(data)


def test_the_plain_response_has_the_type_of_openai_s_package() -> None:
    view = folded([says("One"), SegmentEnded(), says("Two"), USAGE, COMPLETED])
    reply = ChatCompletion.model_validate_json(plain_completion("chatcmpl-1", "main", 7, view))
    assert reply.choices[0].message.content == "One\n\nTwo"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.total_tokens == 13


def test_the_plain_response_of_a_suspended_turn_ends_with_the_question() -> None:
    view = folded([says("Hm."), QUESTION, SUSPENDED])
    reply = ChatCompletion.model_validate_json(plain_completion("chatcmpl-1", "main", 7, view))
    assert (reply.choices[0].message.content or "").endswith("or /approve a7 always.")


RUN_EVENTS: list[tuple[AgentEvent, str, dict[str, Any]]] = [
    (says("Hi"), "message.delta", {"delta": "Hi"}),
    (ReasoningDelta(text="hm"), "reasoning.delta", {"delta": "hm"}),
    (SegmentEnded(), "hermes.segment.ended", {}),
    (SegmentDiscarded(from_seq=4), "hermes.segment.discarded", {"from_seq": 4}),
    (
        STARTED,
        "tool.started",
        {
            "tool": "read_file",
            "tool_call_id": "t_0_0",
            "label": "notes.txt",
            "arguments": ARGUMENTS,
        },
    ),
    (ToolProgress(call=CALL, text="half"), "tool.progress", {"tool_call_id": CALL, "text": "half"}),
    (
        FINISHED,
        "tool.completed",
        {
            "tool": "read_file",
            "tool_call_id": "t_0_0",
            "duration": 0.123,
            "error": False,
            "result": "a note",
        },
    ),
    (
        QUESTION,
        "approval.request",
        {
            "id": "a7",
            "prompt": "Run it?",
            "detail": "make all",
            "reason": "builds everything",
            "choices": ["once", "always", "deny"],
            "expires_at": 9,
        },
    ),
    (
        QuestionAsked(id="q1", call=CALL, kind="question", prompt="Which?"),
        "question.asked",
        {"id": "q1", "prompt": "Which?", "choices": []},
    ),
    (ContextCompacted(messages=3), "hermes.context.compacted", {"messages": 3}),
    (Notice(text="slow"), "notice", {"text": "slow"}),
    (
        USAGE,
        "usage",
        {"usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}},
    ),
]
RUN_ENDS: list[tuple[TurnFinished, str, dict[str, Any]]] = [
    (SUSPENDED, "run.suspended", {"output": "One\n\nTwo"}),
    (
        TurnFinished(outcome="stopped", text="/stop"),
        "run.cancelled",
        {"reason": "/stop", "output": "One\n\nTwo"},
    ),
    (
        COMPLETED,
        "run.completed",
        {
            "output": "One\n\nTwo",
            "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13},
            "finish_reason": "stop",
        },
    ),
]


@pytest.mark.parametrize(("event", "name", "fields"), RUN_EVENTS)
def test_a_run_event_has_a_number_a_name_and_the_run_id(
    event: RunStep, name: str, fields: dict[str, Any]
) -> None:
    assert frames(RunStream("run_1").feed(5, event)) == [
        ("5", name, {"event": name, "run_id": "run_1", **fields})
    ]


@pytest.mark.parametrize(("event", "name", "fields"), RUN_ENDS)
def test_the_last_frame_of_a_run_contains_the_answer(
    event: TurnFinished, name: str, fields: dict[str, Any]
) -> None:
    head, tail = RunStream("run_1").end(5, event, USAGE)
    assert frames(head + encode("One\n\nTwo")[1:-1] + tail) == [
        ("5", name, {"event": name, "run_id": "run_1", **fields})
    ]


def test_a_failed_run_has_no_answer_whatever_its_error_text_is() -> None:
    failed = TurnFinished(outcome="failed", text=ANSWER_PLACEHOLDER.decode(), code="rate_limited")
    whole, tail = RunStream("run_1").end(5, failed, None)
    assert tail == b""
    told = {"event": "run.failed", "run_id": "run_1", "error": failed.text, "code": failed.code}
    assert frames(whole) == [("5", "run.failed", told)]


def test_a_text_delta_costs_microseconds() -> None:
    stream, delta, count = chat(), says(" word"), 20_000
    stream.feed(0, delta)

    def once() -> float:
        started = time.perf_counter()
        for seq in range(count):
            stream.feed(seq, delta)
        return (time.perf_counter() - started) / count

    assert min(once() for _ in range(5)) < 3e-6
