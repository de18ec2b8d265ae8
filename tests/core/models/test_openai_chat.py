"""Chat completions as real servers speak them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise

import aiohttp
import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hermes.core.models.openai_chat import Answer, OpenAIChat, encode
from hermes.testing.model import FakeModel
from hermes.testing.scripted import is_complete
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.events import (
    AgentEvent,
    ReasoningDelta,
    SegmentEnded,
    TextDelta,
    UsageReported,
)
from hermes.types.identity import CallId
from hermes.types.messages import (
    AssistantMessage,
    Message,
    Sampling,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from hermes.types.profile import ModelChoice
from hermes.types.protocols import ModelRequest
from hermes.types.tools import Tool, ToolContext

OPENAI_TEXT = (
    b'data: {"id":"chatcmpl-9x","object":"chat.completion.chunk","created":1,"model":"gpt-4o",'
    b'"service_tier":"default","system_fingerprint":"fp","choices":[{"index":0,"delta":'
    b'{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],'
    b'"usage":null,"obfuscation":"a1"}\n\n'
    b'data: {"id":"chatcmpl-9x","choices":[{"index":0,"delta":{"content":"Gr\xc3\xbc\xc3\x9f"},'
    b'"logprobs":null,"finish_reason":null}],"usage":null}\n\n'
    b'data: {"id":"chatcmpl-9x","choices":[{"index":0,"delta":{"content":" Gott \xf0\x9f\x91\x8b"},'
    b'"logprobs":null,"finish_reason":null}],"usage":null}\n\n'
    b'data: {"id":"chatcmpl-9x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"id":"chatcmpl-9x","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,'
    b'"total_tokens":12,"prompt_tokens_details":{"cached_tokens":0}}}\n\n'
    b"data: [DONE]\n\n"
)
OPENAI_CALLS = (
    b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{'
    b'"index":0,"id":"call_A","type":"function","function":{"name":"look","arguments":""}}]},'
    b'"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":'
    b'"{\\"at\\""}}]},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":'
    b'":1}"}}]},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_B","type":'
    b'"function","function":{"name":"listen","arguments":""}}]},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":'
    b'"{}"}}]},"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'
    b"data: [DONE]\n\n"
)
WHOLE_CALLS_WITHOUT_INDEX = (
    b'data:{"choices":[{"delta":{"role":"assistant","content":"","tool_calls":[{"id":"x",'
    b'"type":"function","function":{"name":"look","arguments":"{\\"at\\":1}"}},{"id":"y","type":'
    b'"function","function":{"name":"listen","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}'
    b"\r\n\r\n"
)
GEMINI_CALLS_ALL_NUMBERED_0 = (
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"f-1","function":{"name":"look",'
    b'"arguments":"{\\"at\\":1}"}}]},"index":0}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"f-2","function":{"name":'
    b'"listen","arguments":"{}"}}]},"finish_reason":"tool_calls","index":0}]}\n\n'
    b"data: [DONE]\n\n"
)
OLD_VLLM_NEW_ID_IN_EVERY_PIECE = (
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"look"}}]}'
    b'}]}\n\ndata: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"2","function":{'
    b'"arguments":"{\\"at\\":"}}]}}]}\n\n'
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"3","function":{"arguments":"1}"}}'
    b',{"index":1,"id":"4","function":{"name":"listen"}}]},"finish_reason":"tool_calls"}]}\n\n'
)
OBJECT_ARGUMENTS = (
    b'data: {"choices":[{"delta":{"tool_calls":[{"function":{"name":"look","arguments":{"at":1}}},'
    b'{"function":{"name":"listen","arguments":null}}]},"finish_reason":"stop"}]}\n\n'
)
DEEPSEEK = (
    b": keep-alive\n\n"
    b'data: {"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"Let me"}'
    b',"finish_reason":null}]}\n\n'
    b'data: {"choices":[{"delta":{"content":null,"reasoning_content":" see."}}]}\n\n'
    b'data: {"choices":[{"delta":{"content":"Blue.","reasoning_content":null}}]}\n\n'
    b'data: {"choices":[{"delta":{"content":""},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":5,"completion_tokens":7}}\n\n'
    b"data: [DONE]\n\n"
)
OPENROUTER = (
    b": OPENROUTER PROCESSING\n\n"
    b'data: {"choices":[{"delta":{"content":"","reasoning":"Hm."}}]}\r\n\r\n'
    b'data: {"choices":[{"delta":{"content":"Blue."},"finish_reason":"stop"}]}'
)
CUT = b'data: {"choices":[{"delta":{"content":"Hello, I"},"finish_reason":null}]}\n\ndata: {"cho'
PLAIN = (
    b'{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant",'
    b'"content":"Blue."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}'
)
SEARCH = (
    ToolCall(id=CallId("t_1_0"), name="look", arguments='{"at":1}'),
    ToolCall(id=CallId("t_1_1"), name="listen", arguments="{}"),
)
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"
JSON = b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nConnection: close\r\n%b\r\n"


class Look(msgspec.Struct):
    at: int = 0


async def run(_context: ToolContext, _arguments: msgspec.Struct) -> str:
    return "done"


LOOK = Tool(name="look", description="Looks.", arguments=Look, handler=run)


@asynccontextmanager
async def answering(payload: bytes) -> AsyncIterator[str]:
    """A server that says the same bytes to everyone and hangs up."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        await reader.readexactly(int(head.partition(b"content-length:")[2].split()[0]))
        writer.write(payload)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def request(
    base_url: str, *messages: Message, key: str = "sk-secret", tools: tuple[Tool, ...] = ()
) -> ModelRequest:
    choice = ModelChoice(provider="acme", model="gpt", base_url=base_url, api_key=key)
    return ModelRequest(
        choice=choice,
        system="be brief",
        messages=messages or (UserMessage(text="hi"),),
        step="t_1",
        tools=tools,
    )


async def ask(
    asked: ModelRequest, silence: float = 300.0
) -> tuple[AssistantMessage, list[AgentEvent]]:
    events: list[AgentEvent] = []
    async with aiohttp.ClientSession() as session:
        message = await OpenAIChat(session, silence=silence).complete(asked, events.append)
    return message, events


async def ask_raw(payload: bytes) -> tuple[AssistantMessage, list[AgentEvent]]:
    async with answering(payload) as base_url:
        return await ask(request(base_url))


async def failure(payload: bytes) -> HermesError:
    with pytest.raises(HermesError) as caught:
        await ask_raw(payload)
    assert "sk-secret" not in str(caught.value)
    assert "acme" in str(caught.value)
    return caught.value


async def test_text_is_streamed_and_returned_whole() -> None:
    message, events = await ask_raw(STREAM + OPENAI_TEXT)
    assert message == AssistantMessage(text="Grüß Gott 👋")
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Grüß Gott 👋"
    assert events[-2:] == [UsageReported(prompt_tokens=9, completion_tokens=3), SegmentEnded()]


@pytest.mark.parametrize(
    "payload",
    [
        OPENAI_CALLS,
        WHOLE_CALLS_WITHOUT_INDEX,
        GEMINI_CALLS_ALL_NUMBERED_0,
        OLD_VLLM_NEW_ID_IN_EVERY_PIECE,
        OBJECT_ARGUMENTS,
    ],
)
async def test_calls_are_assembled_from_any_pieces_under_our_ids(payload: bytes) -> None:
    message, events = await ask_raw(STREAM + payload)
    assert message.calls == SEARCH
    assert events == [SegmentEnded()]


async def test_reasoning_is_kept_apart_from_the_answer() -> None:
    message, events = await ask_raw(STREAM + DEEPSEEK)
    assert message == AssistantMessage(text="Blue.", reasoning="Let me see.")
    assert events == [
        ReasoningDelta(text="Let me see."),
        TextDelta(text="Blue."),
        UsageReported(prompt_tokens=5, completion_tokens=7),
        SegmentEnded(),
    ]


async def test_the_last_newline_and_done_may_be_missing() -> None:
    message, _ = await ask_raw(STREAM + OPENROUTER)
    assert message == AssistantMessage(text="Blue.", reasoning="Hm.")


async def test_a_server_that_does_not_stream_is_understood() -> None:
    message, events = await ask_raw(JSON % (200, b"") + PLAIN)
    assert message == AssistantMessage(text="Blue.")
    assert events == [
        TextDelta(text="Blue."),
        UsageReported(prompt_tokens=5, completion_tokens=2),
        SegmentEnded(),
    ]


async def test_a_cut_stream_is_a_lost_connection() -> None:
    assert isinstance(await failure(STREAM + CUT), Disconnected)
    assert isinstance(await failure(STREAM + CUT.rpartition(b"data")[0]), Disconnected)
    assert isinstance(await failure(STREAM), Disconnected)


async def test_garbage_in_a_stream_is_a_lost_connection() -> None:
    assert isinstance(await failure(STREAM + b'data: {"choices": 7}\n\n'), Disconnected)


async def test_a_line_without_end_is_refused() -> None:
    assert isinstance(await failure(STREAM + b"data: " + b"x" * (5 << 20)), Rejected)


async def test_a_web_page_is_refused_with_advice() -> None:
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>"
    error = await failure(page)
    assert isinstance(error, Rejected)
    assert "base_url" in str(error)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (b'{"message":"overloaded","code":502}', Disconnected),
        (b'{"message":"too fast","code":"429"}', RateLimited),
        (b'{"message":"too fast","type":"rate_limit_error"}', RateLimited),
        (b'{"message":"too long","code":"context_length_exceeded"}', Rejected),
        (b'{"message":"who are you","type":"authentication_error"}', AuthFailed),
        (b'"something broke"', Disconnected),
    ],
)
async def test_an_error_in_the_middle_of_a_stream_is_what_it_would_have_been_before(
    error: bytes, kind: type[HermesError]
) -> None:
    started = b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n'
    raised = await failure(STREAM + started + b'data: {"error":' + error + b"}\n\n")
    assert type(raised) is kind


async def test_an_answer_that_failed_behind_the_proxy_was_cut() -> None:
    ended = b'data: {"choices":[{"delta":{"content":""},"finish_reason":"error"}]}\n\n'
    assert isinstance(await failure(STREAM + ended + b"data: [DONE]\n\n"), Disconnected)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, Rejected),
        (400, Rejected),
        (401, AuthFailed),
        (402, Rejected),
        (403, AuthFailed),
        (404, Rejected),
        (408, Disconnected),
        (409, Disconnected),
        (422, Rejected),
        (429, RateLimited),
        (500, Disconnected),
        (503, Disconnected),
        (529, Disconnected),
    ],
)
async def test_every_status_has_its_error(status: int, kind: type[HermesError]) -> None:
    body = b'{"error":{"message":"no model gpt,\\n sk-secret","type":"x","code":null}}'
    error = await failure(JSON % (status, b"") + body)
    assert type(error) is kind
    assert status == 401 or "no model gpt, …" in str(error)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":"no such model"}',
        b'{"object":"error","message":"no such model","code":404}',
        b'{"detail":"no such model"}',
        b'[{"error":{"code":404,"message":"no such model","status":"NOT_FOUND"}}]',
    ],
)
async def test_the_providers_own_sentence_is_found(body: bytes) -> None:
    assert "no such model" in str(await failure(JSON % (404, b"") + body))


async def test_an_error_without_a_sentence_gives_advice() -> None:
    for body in (b"", b"[]", b"<html>"):
        assert "check base_url" in str(await failure(JSON % (404, b"") + body))


async def test_a_rate_limit_says_when_to_come_back() -> None:
    error = await failure(JSON % (429, b"Retry-After: 7\r\n") + b'{"error":{"message":"slow"}}')
    assert isinstance(error, RateLimited)
    assert error.retry_after == 7.0


async def test_an_empty_account_is_not_a_rate_limit() -> None:
    body = b'{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}'
    assert isinstance(await failure(JSON % (429, b"") + body), Rejected)


async def test_nobody_listening_is_a_lost_connection() -> None:
    async with answering(b"") as base_url:
        pass
    with pytest.raises(Disconnected, match="out of reach"):
        await ask(request(base_url))


async def test_silence_is_a_lost_connection() -> None:
    async with FakeModel() as model:
        with pytest.raises(Disconnected, match="in time"):
            await ask(request(model.base_url, UserMessage(text="hang")), silence=0.05)


async def test_cancelling_closes_the_connection_at_once() -> None:
    spoke, hung_up = anyio.Event(), anyio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(STREAM + CUT)
        while await reader.read(1 << 16):
            pass
        hung_up.set()
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    base_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, aiohttp.ClientSession() as session:
        async with anyio.create_task_group() as turn:
            chat = OpenAIChat(session)
            turn.start_soon(chat.complete, request(base_url), lambda _event: spoke.set())
            await spoke.wait()
            turn.cancel_scope.cancel()
        with anyio.fail_after(5):
            await hung_up.wait()


async def test_a_strict_server_accepts_a_whole_conversation() -> None:
    talk: tuple[Message, ...] = (
        UserMessage(text="hi", sender="Ann"),
        AssistantMessage(text="", calls=SEARCH),
        ToolMessage(call=SEARCH[0].id, text="sky"),
        ToolMessage(call=SEARCH[1].id, text="birds", failed=True),
        AssistantMessage(text=""),
        UserMessage(text="look again", sender="Bob"),
        AssistantMessage(
            text="so", calls=(ToolCall(id=CallId("t_2_0"), name="look", arguments="{broken"),)
        ),
        ToolMessage(call=CallId("t_2_0"), text="blue"),
    )
    async with FakeModel(key="sk-secret") as model:
        message, _ = await ask(request(model.base_url, *talk, tools=(LOOK,)))
        assert is_complete(message.text)
        assert "[Bob]" in message.text
        assert "blue" in message.text
        assert model.stats.refused == {}
        sent = model.requests[0]
        assert [m.role for m in sent.messages[:3]] == ["system", "user", "assistant"]
        made = sent.messages[7].tool_calls
        assert made is not None
        assert made[0].function.arguments == '{"invalid_json":"{broken"}'


async def test_parallel_calls_come_back_over_a_connection_that_is_used_again() -> None:
    asked = UserMessage(text='tool:look{"at":1} tool:listen')
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        chat = OpenAIChat(session)
        for _ in range(3):
            message = await chat.complete(request(model.base_url, asked), lambda _event: None)
            assert message.calls == SEARCH
        assert len(model.connections) == 1


async def test_a_connection_cut_by_the_server_is_a_lost_connection() -> None:
    events: list[AgentEvent] = []
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        with pytest.raises(Disconnected):
            await OpenAIChat(session).complete(
                request(model.base_url, UserMessage(text="cut:4")), events.append
            )
    assert any(isinstance(event, TextDelta) for event in events)
    assert SegmentEnded() not in events


def sent(asked: ModelRequest) -> dict[str, object]:
    return msgspec.json.decode(encode(asked), type=dict[str, object])


def test_only_options_that_are_set_are_sent() -> None:
    plain = request("http://x/v1")
    assert sent(plain) == {
        "stream": True,
        "stream_options": {"include_usage": True},
        "model": "gpt",
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
        ],
    }
    sampling = Sampling(temperature=0.0, max_tokens=5, stop=("a", '"max_tokens":'))
    chosen = sent(msgspec.structs.replace(plain, sampling=sampling))
    added = {name: value for name, value in chosen.items() if name not in sent(plain)}
    assert added == {"temperature": 0.0, "max_tokens": 5, "stop": ["a", '"max_tokens":']}


def test_openai_gets_its_own_name_for_the_token_limit() -> None:
    asked = msgspec.structs.replace(
        request("https://api.openai.com/v1"),
        sampling=Sampling(max_tokens=5, stop=('"max_tokens":',)),
    )
    assert sent(asked)["max_completion_tokens"] == 5
    assert sent(asked)["stop"] == ['"max_tokens":']
    assert "max_tokens" not in sent(asked)


STREAMS = [
    OPENAI_TEXT,
    OPENAI_CALLS,
    WHOLE_CALLS_WITHOUT_INDEX,
    GEMINI_CALLS_ALL_NUMBERED_0,
    OLD_VLLM_NEW_ID_IN_EVERY_PIECE,
    OBJECT_ARGUMENTS,
    DEEPSEEK,
    OPENROUTER + b"\n",
]


def fed(reads: list[bytes]) -> tuple[AssistantMessage, str, list[AgentEvent]]:
    events: list[AgentEvent] = []
    answer = Answer(ModelChoice(provider="p", model="m", base_url=""), events.append)
    for data in reads:
        answer.feed(data)
    message = answer.message("t_1")
    deltas = [event for event in events if isinstance(event, TextDelta | ReasoningDelta)]
    rest = [event for event in events if event not in deltas]
    return message, "".join(event.text for event in deltas), rest


@given(st.sampled_from(STREAMS), st.lists(st.integers(0, 1500)))
def test_a_stream_means_the_same_however_it_is_cut(stream: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert fed([stream[start:end] for start, end in pairwise(edges)]) == fed([stream])


def test_a_stream_can_come_byte_by_byte() -> None:
    for stream in STREAMS:
        assert fed([bytes([byte]) for byte in stream]) == fed([stream])


@pytest.mark.parametrize("said", ["hello tokens:40", "tokens:30 delay:0.01", "tokens:40000"])
async def test_an_answer_that_nobody_reads_along_is_the_same_in_fewer_pieces(said: str) -> None:
    pieces: dict[bool, list[AgentEvent]] = {True: [], False: []}
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        for live, heard in pieces.items():
            asked = replace(request(model.base_url, UserMessage(text=said)), live=live)
            message = await OpenAIChat(session).complete(asked, heard.append)
            assert is_complete(message.text)
            assert "".join(e.text for e in heard if isinstance(e, TextDelta)) == message.text
    texts = {live: sum(isinstance(e, TextDelta) for e in seen) for live, seen in pieces.items()}
    assert texts[False] <= texts[True]


async def test_a_cut_is_noticed_also_when_nobody_reads_along() -> None:
    async with FakeModel() as model, aiohttp.ClientSession() as session:
        asked = replace(request(model.base_url, UserMessage(text="tokens:30 cut:10")), live=False)
        with pytest.raises(Disconnected):
            await OpenAIChat(session).complete(asked, lambda event: None)
