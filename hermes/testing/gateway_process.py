"""Runs `hermes gateway run` as a process, which can be killed and started again."""

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from os import defpath
from pathlib import Path

import anyio
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from hermes.control import stranded_work
from hermes.state.paths import write_private
from hermes.state.postgres import presence
from hermes.testing.running import until
from hermes.testing.service import SERVICE_KEY
from hermes.testing.stores import store_url
from hermes.types.value import Value

START_SECONDS = 30
SERVER_PORTS = (10_000, 32_000)


class SharedStore(Value):
    """The database that several gateways share, and the time limits after which the other gateways
    consider a gateway dead."""

    url: str
    direct_url: str = ""
    """The address of the server itself, if `url` is the address of a pooler."""
    beat_seconds: float = presence.BEAT_SECONDS
    stale_seconds: float = presence.STALE_SECONDS
    bus_url: str = ""
    """The address of a NATS server. If it is empty, the gateways use notifications of the
    database."""
    shared_folder: str = ""
    """The folder with the files of all gateways. If it is empty, each gateway keeps its files in
    its home."""
    folder_seconds: float = stranded_work.FOLDER_SECONDS


def impatient_store(folder: Path) -> SharedStore | None:
    """Returns the PostgreSQL database of the home `folder`, with time limits so short that a killed
    gateway soon counts as dead. Returns None if the test uses SQLite."""
    url = store_url(folder)
    return SharedStore(url=url, beat_seconds=0.2, stale_seconds=2.0) if url else None


_WITH_TIMES = """
from {1} import main
from hermes.control import stranded_work
from hermes.state.postgres import presence

presence.BEAT_SECONDS, presence.STALE_SECONDS = {0.beat_seconds}, {0.stale_seconds}
stranded_work.FOLDER_SECONDS = {0.folder_seconds}
main()
"""


class GatewayProcess:
    """A gateway process whose environment has `folder` as the home directory of the user. The port
    stays the same after a restart.

    `descriptors` limits the number of files that the gateway may open. Without `store`, the gateway
    uses SQLite. `environ` has additional environment variables. `program` is the module whose
    function `main` is run as the command `hermes`.
    """

    def __init__(
        self,
        folder: Path,
        model_url: str,
        descriptors: int | None = None,
        store: SharedStore | None = None,
        environ: Mapping[str, str] | None = None,
        program: str = "hermes.__main__",
    ) -> None:
        self.folder = folder
        self.workspace = folder / ".hermes" / "workspace"
        self.workspace.mkdir(parents=True)
        self.key = SERVICE_KEY
        write_private(folder / ".hermes" / "api_server.key", f"{SERVICE_KEY}\n")
        self.port = free_port()
        self._environ = {
            "PATH": defpath,
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "HERMES_BUS_URL": store.bus_url if store else "",
            "HERMES_CUSTOM_BASE_URL": model_url,
            "HERMES_MODEL": "scripted",
            # All sessions work in `workspace`, where tests expect their files.
            "TERMINAL_SCOPE": "agent",
            "HERMES_STORE_URL": store.url if store else "",
            "HERMES_STORE_DIRECT_URL": store.direct_url if store else "",
            "HERMES_STORE_SHARED_FOLDER": store.shared_folder if store else "",
            **(environ or {}),
        }
        self._start = ["-c", _WITH_TIMES.format(store, program)] if store else ["-m", program]
        self._descriptors = descriptors
        self._log = folder / "gateway.log"
        self._process: Process | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def pid(self) -> int:
        assert self._process is not None, "no gateway is running"
        return self._process.pid

    async def start(self) -> None:
        """Starts the process. Returns when its API accepts requests."""
        assert self._process is None, "a gateway is running"
        command = [sys.executable, *self._start, "gateway", "run", "--port", str(self.port)]
        if self._descriptors is not None:
            command = ["sh", "-c", f'ulimit -n {self._descriptors}; exec "$@"', "sh", *command]
        with self._log.open("wb") as log:
            self._process = await anyio.open_process(
                command, env=self._environ, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            await until(lambda: "\n  curl " in self.log, START_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"the gateway did not start:\n{self.log}") from error

    @property
    def log(self) -> str:
        """The output and the log of the process."""
        return self._log.read_text("utf-8")

    def check_running(self) -> None:
        """Fails if the gateway has ended although no method of this object has ended it."""
        code = self._process.returncode if self._process else None
        assert code is None, f"the gateway ended with {code}:\n{self.log[-4000:]}"

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    async def terminate(self) -> int:
        """Sends SIGTERM and waits until the process has ended; returns its exit code."""
        assert self._process is not None, "no gateway is running"
        self._process.terminate()
        code = await self._process.wait()
        process, self._process = self._process, None
        await process.aclose()
        return code

    async def kill(self) -> None:
        """Sends SIGKILL and waits until the process is gone."""
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.aclose()


@asynccontextmanager
async def gateway_process(
    folder: Path,
    model_url: str,
    descriptors: int | None = None,
    store: SharedStore | None = None,
) -> AsyncIterator[GatewayProcess]:
    """Yields a started gateway, which is killed when the block ends."""
    gateway = GatewayProcess(folder, model_url, descriptors, store)
    try:
        await gateway.start()
        yield gateway
    finally:
        with anyio.CancelScope(shield=True):
            await gateway.kill()


def free_port() -> int:
    """Returns a port that nobody uses at the moment. The system never gives this port to an
    outgoing connection, so the port is still free when a server starts to listen on it."""
    while True:
        port = random.randrange(*SERVER_PORTS)  # noqa: S311
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port


@asynccontextmanager
async def model_process() -> AsyncIterator[str]:
    """Runs a `FakeModel` in a process of its own until the block ends, and yields its base URL."""
    command = [sys.executable, "-m", "hermes.testing.model"]
    opened = await anyio.open_process(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    async with opened as process:
        try:
            assert process.stdout is not None
            with anyio.fail_after(START_SECONDS):
                line = await _line_with("http://", TextReceiveStream(process.stdout))
            yield line.rpartition(" ")[2]
        finally:
            process.kill()


async def _line_with(words: str, output: TextReceiveStream) -> str:
    """Returns the first line of the output that contains the words."""
    shown = ""
    async for text in output:
        shown += text
        for line in shown.splitlines(keepends=True):
            if words in line and line.endswith("\n"):
                return line.strip()
    raise AssertionError(f"the process did not start: {shown}")
