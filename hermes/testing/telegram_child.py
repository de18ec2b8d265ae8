"""The `hermes` command for trials with Telegram: a gateway that records its calls and tool runs.

The records are files in the home directory of the user, and survive a kill of the process.
"""

import os
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec
from msgspec.structs import replace

from hermes.app.application import Application
from hermes.app.gateway import GatewayOverrides, limit_threads, open_gateway
from hermes.control.gateway import Gateway
from hermes.entry.cli.main import run
from hermes.entry.platforms.telegram.adapter import TelegramAdapter
from hermes.entry.platforms.telegram.api import BotApi, Upload
from hermes.entry.platforms.telegram.manifest import TELEGRAM, TelegramConfig, token_of
from hermes.settings import Settings
from hermes.testing.loop_delays import measured_delays
from hermes.types.errors import RateLimited
from hermes.types.platforms import AnyPlatform, PlatformAdapter
from hermes.types.tools import Tool, ToolContext
from hermes.types.value import Value

T = TypeVar("T")
R = TypeVar("R", bound=Value)

CHILD_PROGRAM = "hermes.testing.telegram_child"
CALLS, PAUSES, DELAYS = "calls.jsonl", "pauses.jsonl", "delays.json"
"""The names of the record files."""


class CallRecord(Value):
    """A record of one of two things: the start of a call for a chat, or the answer 429 (too many
    requests) to a call."""

    pid: int
    chat: str
    at: float
    """The time of the start or of the answer, in seconds since 1970."""
    until: float = 0.0
    """The time until which the answer forbids further calls; 0 for the start of a call."""


class PauseRecord(Value):
    """The start or the end of a run of the tool `pause`."""

    pid: int
    token: str
    ended: bool = False


def appender(name: str) -> Callable[[Value], None]:
    """Returns a function that appends a record to the file with this name in the home directory."""
    file = (Path.home() / name).open("ab", buffering=0)

    def append(record: Value) -> None:
        file.write(msgspec.json.encode(record) + b"\n")

    return append


def read_records(path: Path, kind: type[R]) -> list[R]:
    """Returns the records of all processes, oldest first. A process that is killed can leave an
    incomplete line. Such a line is ignored."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [msgspec.json.decode(line, type=kind) for line in lines if line.endswith(b"}")]


class RecordingApi(BotApi):
    """A client of the Bot API that records the start of each call for a chat, and each answer with
    the status 429."""

    def __init__(self, base_url: str, token: str) -> None:
        super().__init__(base_url, token)
        self._append = appender(CALLS)

    async def call(
        self,
        method: str,
        returns: type[T],
        parameters: Mapping[str, object],
        upload: Upload | None = None,
        wait: float = 0.0,
    ) -> T:
        chat = parameters.get("chat_id")
        if chat is None:
            return await super().call(method, returns, parameters, upload, wait)
        started = CallRecord(pid=os.getpid(), chat=str(chat), at=time.time())
        self._append(started)
        try:
            return await super().call(method, returns, parameters, upload, wait)
        except RateLimited as limit:
            now = time.time()
            self._append(replace(started, at=now, until=now + (limit.retry_after or 0.0)))
            raise


class RecordingAdapter(TelegramAdapter):
    def __init__(self, account: str, config: TelegramConfig) -> None:
        super().__init__(account, config)
        self._api = RecordingApi(config.base_url, token_of(account, config))


def _make(account: str, config: TelegramConfig) -> PlatformAdapter:
    return RecordingAdapter(account, config)


class Pause(msgspec.Struct, forbid_unknown_fields=True):
    token: str
    seconds: float


def pause_tool() -> Tool[Pause]:
    append = appender(PAUSES)

    async def pause(context: ToolContext, arguments: Pause) -> str:
        record = PauseRecord(pid=os.getpid(), token=arguments.token)
        append(record)
        await anyio.sleep(arguments.seconds)
        append(replace(record, ended=True))
        return "paused"

    return Tool(
        name="pause",
        description="Waits for some seconds.",
        arguments=Pause,
        handler=pause,
        repeatable=True,
        uses_files=False,
    )


class RecordingApplication(Application):
    def platforms(self) -> Sequence[AnyPlatform]:
        return [replace(TELEGRAM, make=_make)]

    def open_gateway(
        self, settings: Settings, *, terminal: bool
    ) -> AbstractAsyncContextManager[Gateway]:
        limit_threads()
        return _opened(settings, terminal=terminal)


@asynccontextmanager
async def _opened(settings: Settings, *, terminal: bool) -> AsyncIterator[Gateway]:
    overrides = GatewayOverrides(tools=[pause_tool()])
    async with (
        open_gateway(settings, overrides, terminal=terminal) as gateway,
        measured_delays(Path.home() / DELAYS),
    ):
        yield gateway


def main() -> None:
    run(RecordingApplication())


if __name__ == "__main__":
    main()
