"""Runs models on this machine: llama.cpp serves a GGUF file in a child process."""

import logging
import os
import re
import secrets
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path

import anyio
import anyio.abc
import msgspec
from msgspec.structs import replace

from hermes.boundary.execution.environment import child_environment
from hermes.core.models.download import SMOLLM2, fetch
from hermes.core.models.local_child import DEMO_ANSWER_TOKENS, LISTENING, ServerOptions
from hermes.core.models.request_fields import answer_limit
from hermes.types.errors import ConfigError, Disconnected, HermesError
from hermes.types.events import Notice
from hermes.types.messages import AssistantMessage
from hermes.types.models import ModelProvider, ModelRequest
from hermes.types.profile import ModelChoice
from hermes.types.protocols import Emit

log = logging.getLogger(__name__)

EMBEDDED = "smollm2-135m-instruct"
PASSED_VARIABLES = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
LOADING_NOTICE = 2.0
"""If the model is not loaded after this number of seconds, the person who waits for the answer gets
a notice."""
ENDING_SECONDS = 1.0
"""Longest wait in seconds for the process to end after the connection to it was lost."""
LONGEST_OUTPUT_LINE = 4096
_STAMP = re.compile(r"^[\d.]+ [A-Z] +")
"""Matches the time and the level at the beginning of a line from llama.cpp."""


@asynccontextmanager
async def local_models(
    models: Path, wire: ModelProvider, environ: Mapping[str, str]
) -> AsyncIterator["LocalModel"]:
    """Yields the provider for `local` models. The processes of the models end when the block
    ends."""
    async with anyio.create_task_group() as group:
        yield LocalModel(models, wire, environ, group)
        group.cancel_scope.cancel()


class LocalModel:
    """Calls models that are files on this machine. A model is loaded when it is first needed. Only
    one model is loaded at a time."""

    def __init__(
        self,
        models: Path,
        wire: ModelProvider,
        environ: Mapping[str, str],
        group: anyio.abc.TaskGroup,
    ) -> None:
        self._models = models
        self._wire = wire
        self._environ = environ
        self._group = group
        self._engine: Engine | None = None
        self._choosing = anyio.Lock()

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        async with self._engine_for(request.choice, emit) as engine:
            await engine.wait(emit)
            try:
                return await self._wire.complete(_addressed(request, engine), emit)
            except Disconnected as error:
                with anyio.move_on_after(ENDING_SECONDS):
                    await engine.ended.wait()
                if engine.ended.is_set():
                    raise Disconnected(f"the local model's process {engine.end}") from error
                raise

    @asynccontextmanager
    async def _engine_for(self, choice: ModelChoice, emit: Emit) -> AsyncIterator["Engine"]:
        """Yields the process that serves the model. The process keeps running until the block
        ends."""
        check_installed()
        if choice.model == EMBEDDED and not SMOLLM2.is_downloaded(self._models):
            emit(Notice(text="the embedded model is downloaded first, once"))
            await fetch(self._models, lambda done, total: None, self._environ)
        options = server_options(choice, self._models)
        # While the previous model finishes its answers, the lock makes later requests wait.
        async with self._choosing:
            engine = self._engine
            if engine is None or not engine.serves(options):
                if engine is not None:
                    await engine.retire()
                engine = self._engine = Engine(options)
                self._group.start_soon(
                    engine.run, child_environment(self._environ, PASSED_VARIABLES)
                )
            engine.users += 1
        try:
            yield engine
        finally:
            engine.leave()


def check_installed() -> None:
    if find_spec("xllamacpp") is None:
        raise ConfigError("local models need xllamacpp: run `pip install 'hermes-gateway[local]'`")


def _addressed(request: ModelRequest, engine: "Engine") -> ModelRequest:
    url, key, sampling = f"{engine.url}/v1", engine.options.key, request.sampling
    choice = replace(request.choice, base_url=url, api_key=key, wire="chat")
    if engine.options.tiny:
        limit = min(answer_limit(request) or DEMO_ANSWER_TOKENS, DEMO_ANSWER_TOKENS)
        sampling = replace(sampling, max_tokens=limit)
    return replace(request, choice=choice, sampling=sampling)


def server_options(choice: ModelChoice, models: Path) -> ServerOptions:
    """Returns the options for a child process. Raises ConfigError if the model file is missing."""
    embedded = choice.model == EMBEDDED
    path = SMOLLM2.path(models) if embedded else models / Path(choice.model).expanduser()
    if not path.is_file():
        raise ConfigError(
            f"there is no file {str(path)!r}: set model.default to the path of a GGUF file"
        )
    return ServerOptions(
        path=str(path.absolute()),
        context=choice.window,
        key=secrets.token_urlsafe(32),
        # The threads use CPU time even while they wait for each other, so each of them needs a free
        # core.
        threads=1 if embedded else max(1, (os.cpu_count() or 1) // 2),
        tiny=embedded,
    )


class Engine:
    """A child process with one model loaded."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.url = ""
        """The address of the server; empty until it listens."""
        self.users = 0
        self.ended = anyio.Event()
        self.end = ""
        """The reason why the process ended, as the rest of a sentence that begins with `the
        process`; empty while the process runs."""
        self._settled = anyio.Event()
        self._left = anyio.Event()
        self._scope = anyio.CancelScope()
        self._failure: HermesError | None = None
        self._said: deque[str] = deque(maxlen=50)

    def serves(self, options: ServerOptions) -> bool:
        """Returns whether the process is alive and has loaded the model of these options, with the
        same context length."""
        same = (self.options.path, self.options.context) == (options.path, options.context)
        return same and not self.ended.is_set()

    async def wait(self, emit: Emit) -> None:
        """Waits until the server listens. Raises an error if it can't start."""
        with anyio.move_on_after(LOADING_NOTICE):
            await self._settled.wait()
        if not self._settled.is_set():
            emit(Notice(text="the local model is being loaded"))
            await self._settled.wait()
        if self._failure is not None:
            raise self._failure

    def leave(self) -> None:
        self.users -= 1
        self._left.set()

    async def retire(self) -> None:
        """Waits until no turn uses the process, and ends it."""
        while self.users:
            self._left = anyio.Event()
            await self._left.wait()
        self._scope.cancel()
        await self.ended.wait()

    async def run(self, environment: Mapping[str, str]) -> None:
        """Runs the child process and reads its output, until the process ends or this task is
        cancelled."""
        try:
            with self._scope:
                await self._serve(environment)
        except OSError as error:
            self._failure = Disconnected(f"the local model can't be started: {error.strerror}")
        finally:
            self.ended.set()
            self._settled.set()

    async def _serve(self, environment: Mapping[str, str]) -> None:
        process = await anyio.open_process(
            # -P prevents imports from the current folder.
            [sys.executable, "-P", "-m", "hermes.core.models.local_child"],
            stderr=subprocess.STDOUT,
            env=environment,
            # Ctrl-C in the terminal must not reach the child, so that running turns can finish.
            start_new_session=True,
        )
        async with process:
            assert process.stdin is not None
            assert process.stdout is not None
            await process.stdin.send(msgspec.json.encode(self.options) + b"\n")
            async for line in _lines(process.stdout):
                if not self.url and line.startswith(LISTENING):
                    self.url = line.removeprefix(LISTENING)
                    self._settled.set()
                else:
                    self._said.append(line)
            self._note_end(await process.wait())

    def _note_end(self, code: int) -> None:
        """Records why the process ended."""
        named = signal.Signals(-code).name if code < 0 else ""
        how = f"was ended by {named}" if named else f"ended with code {code}"
        said = [_STAMP.sub("", line) for line in self._said] or ["it gave no reason"]
        if self.url:
            self.end = f"{how} ({said[-1]})"
            log.warning("the local model's process %s", self.end)
        elif named:
            self._failure = Disconnected(
                f"the local model's process {how} while it loaded {self.options.path!r}: the model"
                " may need more memory than there is"
            )
        else:
            # llama.cpp prints the cause of an error in its first line. A Python traceback names the
            # cause in its last line.
            cause = said[-1] if said[0].startswith("Traceback") else said[0]
            self._failure = ConfigError(f"{self.options.path!r} can't be loaded: {cause}")


async def _lines(stream: anyio.abc.ByteReceiveStream) -> AsyncIterator[str]:
    rest = b""
    async for data in stream:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").rstrip()
        rest = rest[-LONGEST_OUTPUT_LINE:]
