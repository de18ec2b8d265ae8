"""OpenAI's own client can use the chat completions of the API."""

from pathlib import Path

import anyio
import msgspec
import openai
import pytest
from msgspec.structs import replace
from openai.types.chat import ChatCompletionMessageParam

from hermes.entry.http.server import ApiOptions
from hermes.state.search import search
from hermes.testing.bare import request
from hermes.testing.openai_client import KITCHEN, client_of, user_says
from hermes.testing.rows import EVERYBODY
from hermes.testing.running import rows, until
from hermes.testing.scripted import Plan, calls_in, is_complete
from hermes.testing.service import OPTIONS, SERVICE_KEY, Service, serving
from hermes.types.messages import Sampling


async def test_a_plain_question_is_answered(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        answer = await client.chat.completions.create(model="main", messages=user_says("hello"))
    assert is_complete(answer.choices[0].message.content or "")
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens > 0


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_an_answer_that_was_cut_off_says_so(tmp_path: Path, reason: str) -> None:
    told = user_says(f"a story finish:{reason}")
    async with serving(tmp_path) as service, client_of(service) as client:
        answer = await client.chat.completions.create(model="main", messages=told)
        stream = await client.chat.completions.create(model="main", messages=told, stream=True)
        chunks = [chunk async for chunk in stream]
    assert answer.choices[0].finish_reason == reason
    assert chunks[-1].choices[0].finish_reason == reason
    assert is_complete(answer.choices[0].message.content or ""), "there is no notice in the answer"


@pytest.mark.parametrize("usage", [True, False])
async def test_a_stream_adds_up_to_one_whole_answer(tmp_path: Path, usage: bool) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        stream = await client.chat.completions.create(
            model="main",
            messages=user_says("hello tokens:40"),
            stream=True,
            stream_options={"include_usage": usage},
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert is_complete(text)
    assert len(calls_in(text)) == 1
    assert [c.usage.total_tokens > 0 for c in chunks if c.usage] == ([True] if usage else [])


async def test_a_session_remembers_and_accepts_only_new_messages(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        first = await client.chat.completions.create(
            model="main", messages=user_says("my name is Ada"), extra_headers=KITCHEN
        )
        history: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": "be brief"},
            *user_says("my name is Ada"),
            {"role": "assistant", "content": first.choices[0].message.content},
            *user_says("what is my name?"),
        ]
        await client.chat.completions.create(model="main", messages=history, extra_headers=KITCHEN)
        sent = service.model.requests[-1].messages
        stored = await rows(service.gateway._store, "select role, text from messages order by id")
    said = [message.content for message in sent if message.role == "user"]
    assert said == ["my name is Ada", "what is my name?"]
    assert "be brief" in str(sent[0].content)
    assert [role for role, _ in stored] == ["user", "assistant", "user", "assistant"]
    assert not any("be brief" in text for _, text in stored)


async def test_a_stateless_request_leaves_no_transcript(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        await client.chat.completions.create(model="main", messages=user_says("private matter"))
        found = await service.gateway._store.read(search, "private", EVERYBODY)
        kept = await rows(service.gateway._store, "select min(transient) from messages")
    assert found == []
    assert kept == [(1,)]


async def test_only_one_choice_can_be_asked_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model="main", messages=user_says("hello"), n=2)
        one = await client.chat.completions.create(model="main", messages=user_says("hello"), n=1)
        assert service.model.stats.calls == 1
    assert (caught.value.code, caught.value.param) == ("unsupported_parameter", "n")
    assert len(one.choices) == 1


async def test_a_wrong_key_is_an_authentication_error(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        async with client_of(service, "wrong") as client:
            with pytest.raises(openai.AuthenticationError):
                await client.chat.completions.create(model="main", messages=user_says("hello"))
        assert service.model.stats.calls == 0


async def test_guesses_of_keys_are_delayed_but_the_right_key_is_not(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path) as service:
        async with client_of(service, "not-the-key") as stranger:
            for _ in range(10):
                with pytest.raises(openai.AuthenticationError):
                    await stranger.models.list()
            with pytest.raises(openai.RateLimitError):
                await stranger.models.list()
        async with client_of(service) as client:
            assert (await client.models.list()).data


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "only this"}],
        [{"role": "wizard", "content": "hi"}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
        [{"role": "user", "content": 7}],
        "hello",
    ],
)
async def test_a_bad_body_is_a_bad_request(
    tmp_path: Path, messages: list[ChatCompletionMessageParam]
) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(model="main", messages=messages)
    assert caught.value.message


async def test_a_body_over_the_limit_is_too_large(tmp_path: Path) -> None:
    options = ApiOptions(key=SERVICE_KEY, port=0, most_bytes=10_000)
    async with serving(tmp_path, options) as service, client_of(service) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(model="main", messages=user_says("x" * 20_000))
        assert caught.value.status_code == 413
        answer = await client.chat.completions.create(model="main", messages=user_says("short"))
    assert answer.choices


async def test_too_many_runs_at_once_get_a_rate_limit_error(tmp_path: Path) -> None:
    config = "api_server: {max_concurrent_runs: 1}"
    (tmp_path / "config.yaml").write_text(config)
    async with serving(tmp_path) as service, client_of(service) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(ask_forever, client)
            await until(lambda: service.gateway.busy)
            with pytest.raises(openai.RateLimitError) as caught:
                await client.chat.completions.create(model="main", messages=user_says("hello"))
            group.cancel_scope.cancel()
    assert caught.value.response.headers["retry-after"] == "1"


async def ask_forever(client: openai.AsyncOpenAI) -> None:
    await client.chat.completions.create(model="main", messages=user_says("hang"))


async def test_a_gateway_that_shuts_down_answers_503(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        await service.gateway.drain(0)
        with pytest.raises(openai.InternalServerError) as caught:
            await client.chat.completions.create(model="main", messages=user_says("hello"))
    assert caught.value.status_code == 503
    assert caught.value.code == "gateway_draining"


async def cut_off_by_shutdown(
    service: Service, *, stream: bool
) -> tuple[int, dict[str, str], bytes]:
    """Sends a request, and shuts the gateway down while the model answers. Returns the response."""
    body = msgspec.json.encode({"messages": user_says("tokens:5000 delay:0.01"), "stream": stream})
    responses = []

    async def ask() -> None:
        path, session = "/v1/chat/completions", KITCHEN["X-Hermes-Session-Id"]
        responses.append(
            await request(service.port, "POST", path, body, x_hermes_session_id=session)
        )

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await until(lambda: service.model.stats.calls == 1)
        await service.gateway.drain(0)
    return responses[0]


async def test_the_error_that_ends_a_stream_at_a_shutdown_has_no_event_id(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        _, _, body = await cut_off_by_shutdown(service, stream=True)
    (failed,) = (frame for frame in body.split(b"\n\n") if b"gateway_restarting" in frame)
    assert failed.startswith(b"data: ")


async def test_the_response_to_a_run_that_a_shutdown_cut_off_names_the_run(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        status, headers, body = await cut_off_by_shutdown(service, stream=False)
        ((turn,),) = await rows(service.gateway._store, "select id from turns")
    assert (status, b"gateway_restarting" in body) == (503, True)
    assert headers["x-hermes-run-id"] == f"run_{turn}"
    assert headers["x-hermes-session-id"] == "kitchen"


@pytest.mark.parametrize("stream", [True, False])
async def test_the_error_of_a_failed_run_names_the_run(tmp_path: Path, stream: bool) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(
                model="main", messages=user_says("status:401"), stream=stream
            )
        ((turn,),) = await rows(service.gateway._store, "select id from turns")
    assert caught.value.response.headers["x-hermes-run-id"] == f"run_{turn}"


@pytest.mark.parametrize(
    ("said", "status", "code"),
    [
        ("status:429 retry-after:90", 429, "rate_limited"),
        ("status:401", 502, "auth_failed"),
        ("status:400", 400, "rejected"),
        ("status:413", 400, "context_length_exceeded"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_an_error_of_the_model_is_an_http_status_and_not_a_broken_stream(
    tmp_path: Path, said: str, status: int, code: str, stream: bool
) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        with pytest.raises(openai.APIStatusError) as caught:
            await client.chat.completions.create(
                model="main", messages=user_says(said), stream=stream
            )
    assert (caught.value.status_code, caught.value.code) == (status, code)
    assert caught.value.response.headers.get("retry-after") == ("90" if status == 429 else None)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("headers", [{}, KITCHEN], ids=["stateless", "session"])
async def test_a_context_that_is_too_long_has_a_code_of_its_own(
    tmp_path: Path, stream: bool, headers: dict[str, str]
) -> None:
    refused = "This model's maximum context length is 10 tokens. However, you requested 20 tokens."
    async with serving(tmp_path) as service, client_of(service) as client:
        service.model.default = Plan(status=400, text=refused)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(
                model="main", messages=user_says("hello"), stream=stream, extra_headers=headers
            )
    assert (caught.value.code, caught.value.type) == (
        "context_length_exceeded",
        "invalid_request_error",
    )


async def test_options_that_cannot_be_honoured_are_named(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        raw = await client.chat.completions.with_raw_response.create(
            model="main",
            messages=user_says("hello"),
            temperature=0.5,
            logprobs=True,
            user="u1",
            store=False,
            service_tier="auto",
            extra_body={"top_k": 5, "chat_template_kwargs": {}, "é\n": 1},
        )
        sent = service.model.requests[-1]
    assert raw.headers["x-hermes-ignored"] == "logprobs, user, top_k, ?"
    assert sent.temperature == 0.5


async def test_options_that_the_model_is_not_given_are_named(tmp_path: Path) -> None:
    def ignored(model: str | None, sampling: Sampling) -> list[str]:
        assert (model, sampling) == (None, Sampling(seed=1, stop=("x",), temperature=0.5))
        return ["stop", "seed"]

    options = replace(OPTIONS, ignored_options=ignored)
    async with serving(tmp_path, options) as service, client_of(service) as client:
        raw = await client.chat.completions.with_raw_response.create(
            model="main", messages=user_says("hello"), seed=1, stop="x", temperature=0.5
        )
        plain = await client.chat.completions.with_raw_response.create(
            model="main", messages=user_says("hello")
        )
    assert raw.headers["x-hermes-ignored"] == "seed, stop"
    assert "x-hermes-ignored" not in plain.headers


async def test_tool_progress_is_embedded_in_the_stream(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        async with client.chat.completions.with_streaming_response.create(
            model="main", messages=user_says('tool:append{"token":"t1"}'), stream=True
        ) as response:
            lines = [line async for line in response.iter_lines()]
    assert lines.count("event: hermes.tool.progress") == 2
    assert any('"status":"completed"' in line for line in lines)
    assert lines[-2] == "data: [DONE]" or lines[-1] == "data: [DONE]"


async def test_a_question_ends_the_reply_and_the_next_message_answers_it(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        asked = await client.chat.completions.create(
            model="main", messages=user_says('tool:ask{"question":"Red or blue?"}'),
            extra_headers=KITCHEN,
        )  # fmt: skip
        answer = await client.chat.completions.create(
            model="main", messages=user_says("blue"), extra_headers=KITCHEN
        )
    assert "Red or blue?" in (asked.choices[0].message.content or "")
    assert "blue" in (answer.choices[0].message.content or "")


@pytest.mark.parametrize("stream", [True, False])
async def test_commands_work_in_a_session(tmp_path: Path, stream: bool) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        answer = await client.chat.completions.create(
            model="main", messages=user_says("/status"), extra_headers=KITCHEN, stream=stream
        )
        text = (
            "".join([c.choices[0].delta.content or "" async for c in answer if c.choices])
            if isinstance(answer, openai.AsyncStream)
            else answer.choices[0].message.content
        )
        assert service.model.stats.calls == 0
    assert text == "Idle."


async def test_a_busy_session_makes_the_next_request_wait_its_turn(tmp_path: Path) -> None:
    answers: list[str] = []

    async def ask(client: openai.AsyncOpenAI, text: str) -> None:
        answer = await client.chat.completions.create(
            model="main", messages=user_says(text), extra_headers=KITCHEN
        )
        answers.append(answer.choices[0].message.content or "")

    async with serving(tmp_path) as service, client_of(service) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, client, "first ttft:0.3")
            await until(lambda: service.model.stats.calls == 1)
            group.start_soon(ask, client, "second")
        assert service.model.stats.most_open == 1
    assert "first" in answers[0]
    assert "second" in answers[1]


async def leave_when_called(service: Service, headers: dict[str, str], text: str) -> None:
    """Sends a request and disconnects as soon as the model is called."""
    async with client_of(service) as client, anyio.create_task_group() as group:
        create = client.chat.completions.create
        messages = user_says(text)
        group.start_soon(lambda: create(model="main", messages=messages, extra_headers=headers))
        await until(lambda: service.model.stats.calls == 1)
        group.cancel_scope.cancel()


async def test_a_stateless_request_is_stopped_when_its_client_has_gone(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        await leave_when_called(service, {}, "hang")
        await until(lambda: service.gateway.busy == 0)
        states = await rows(service.gateway._store, "select state from turns")
    assert states == [("stopped",)]


async def test_a_request_with_a_session_continues_without_its_client(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        await leave_when_called(service, KITCHEN, "think ttft:0.6")
        await until(lambda: service.gateway.busy == 0)
        states = await rows(service.gateway._store, "select state from turns")
    assert states == [("completed",)]


async def test_a_stop_from_elsewhere_ends_the_request_with_the_text_so_far(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        said: list[str] = []

        async def ask() -> None:
            answer = await client.chat.completions.create(
                model="main",
                messages=user_says("tell delay:0.05 tokens:400"),
                extra_headers=KITCHEN,
            )
            said.append(answer.choices[0].message.content or "")

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await until(lambda: service.model.stats.calls == 1)
            await anyio.sleep(0.2)
            await client.chat.completions.create(
                model="main", messages=user_says("/stop"), extra_headers=KITCHEN
            )
    assert said
    assert not is_complete(said[0])


@pytest.mark.parametrize("value", ["a\tb", "x" * 257, " "])
async def test_a_strange_session_id_is_refused(tmp_path: Path, value: str) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        with pytest.raises((openai.BadRequestError, openai.APIConnectionError)):
            await client.chat.completions.create(
                model="main",
                messages=user_says("hello"),
                extra_headers={"X-Hermes-Session-Id": value},
            )
        assert service.model.stats.calls == 0


async def test_without_a_model_the_answer_says_how_to_get_one(tmp_path: Path) -> None:
    environ = {"HERMES_CUSTOM_BASE_URL": "", "HERMES_MODEL": ""}
    async with serving(tmp_path, environ=environ) as service, client_of(service) as client:
        with pytest.raises(openai.InternalServerError, match="hermes config set"):
            await client.chat.completions.create(model="main", messages=user_says("hello"))
