"""`hermes gateway` in a process of its own, for tests that measure it or limit its resources."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from anyio.streams.text import TextReceiveStream

from hermes.testing.service import SERVICE_KEY
from hermes.types.value import Value

START_SECONDS = 60.0


class GatewayProcess(Value):
    """A gateway that listens."""

    pid: int
    port: int


@asynccontextmanager
async def gateway_process(
    home: Path, model_url: str, descriptors: int | None = None
) -> AsyncIterator[GatewayProcess]:
    """The gateway until the block ends. It may open so many `descriptors`, if that is given."""
    environ = {
        "PATH": os.defpath,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "HERMES_HOME": str(home),
        "HERMES_CUSTOM_BASE_URL": model_url,
        "HERMES_MODEL": "fake",
        "API_SERVER_KEY": SERVICE_KEY,
    }
    command = [sys.executable, "-m", "hermes", "gateway", "run", "--port", "0"]
    if descriptors is not None:
        command = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *command]
    opened = await anyio.open_process(
        command, env=environ, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    async with opened as process:
        try:
            assert process.stdout is not None
            with anyio.fail_after(START_SECONDS):
                line = await _line_with("listens on", TextReceiveStream(process.stdout))
            yield GatewayProcess(pid=process.pid, port=int(line.rpartition(":")[2]))
        finally:
            process.kill()


@asynccontextmanager
async def model_process() -> AsyncIterator[str]:
    """The base URL of a `FakeModel` in a process of its own, until the block ends."""
    command = [sys.executable, "-m", "hermes.testing.model"]
    async with await anyio.open_process(command, stdin=DEVNULL, stdout=PIPE) as process:
        try:
            assert process.stdout is not None
            with anyio.fail_after(START_SECONDS):
                line = await _line_with("http://", TextReceiveStream(process.stdout))
            yield line.rpartition(" ")[2]
        finally:
            process.kill()


async def _line_with(words: str, output: TextReceiveStream) -> str:
    """The first line of the output that contains the words."""
    shown = ""
    async for text in output:
        shown += text
        for line in shown.splitlines(keepends=True):
            if words in line and line.endswith("\n"):
                return line.strip()
    raise AssertionError(f"the process did not start: {shown}")
