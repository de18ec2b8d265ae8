"""The processes of a run: the fake model, the pass-through proxy and our gateway."""

import asyncio
import contextlib
import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar

import msgspec

from benchmarks.client import ask_once, encode
from benchmarks.load import Load, Plan, Target, ask_much
from benchmarks.model import READ, Behaviour, Counts
from benchmarks.processes import Tree, free_port
from benchmarks.record import Record
from benchmarks.watched import DELAYS

KEY = "benchmark-key-0123456789"
HERMES = Path(sys.executable).with_name("hermes")
DISK = Path("/var/tmp")
"""The folder for the files of a run. /tmp is not used: it may be in memory, where a commit costs
less than on a disk."""
FILES = 16384
"""Limit on open files, which is enough for thousands of connections."""
START_SECONDS = 20.0
SETTLE_SECONDS = 3.0

T = TypeVar("T")


class DidNotStart(Exception):
    """Raised if a process of the benchmark did not start."""


class Stage:
    """Starts the processes, sets the behaviour of the model, and runs load."""

    def __init__(self, folder: Path, record: Record) -> None:
        self.folder = folder
        self.record = record
        self.behaviour = Behaviour()
        self._model_port = free_port()
        self._model = self._tree("model", "-m", "benchmarks.model", str(self._model_port))
        self.direct = Target("direct", self._model_port, "fake-model", KEY, self._model)
        self.passthrough = self.new_passthrough()
        self.ours = self.new_gateway()

    def _tree(self, name: str, *arguments: str) -> Tree:
        log = self.folder / f"{name}.log"
        return Tree([sys.executable, *arguments], self.env("passthrough"), log)

    def env(self, home: str) -> dict[str, str]:
        """Returns the environment variables of a child process: only the address of the model, and
        a home on disk."""
        place = self.folder / home
        (place / "workspace").mkdir(parents=True, exist_ok=True)
        (place / "workspace" / READ).write_text("A line to be read.\n" * 20)
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "HERMES_HOME": str(place),
            "HERMES_CUSTOM_BASE_URL": f"http://127.0.0.1:{self._model_port}/v1",
            "HERMES_MODEL": "fake-model",
            "API_SERVER_KEY": KEY,
            # All sessions read the same file in `workspace`.
            "TERMINAL_SCOPE": "agent",
        }

    def new_passthrough(self) -> Target:
        port, upstream = free_port(), f"http://127.0.0.1:{self._model_port}/v1"
        tree = self._tree("proxy", "-m", "benchmarks.passthrough", str(port), upstream, KEY)
        return Target("pass-through", port, "fake-model", KEY, tree)

    def new_gateway(
        self, home: str = "home", *, watched: bool = False, key: str = KEY, store_url: str = ""
    ) -> Target:
        """Starts our gateway with the command that a user would type. If `watched` is set, the
        gateway also measures the delays of its event loop."""
        port = free_port()
        command = [sys.executable, "-m", "benchmarks.watched"] if watched else [str(HERMES)]
        env = {**self.env(home), DELAYS: str(self.folder / "delays.json"), "API_SERVER_KEY": key}
        if store_url:
            env["HERMES_STORE_URL"] = store_url
        tree = Tree(
            [*command, "gateway", "run", "--port", str(port)], env, self.folder / "gateway.log"
        )
        return Target("ours", port, "hermes-agent", key, tree)

    async def restart(self, home: str = "home", *, watched: bool = False, key: str = KEY) -> None:
        """Restarts our gateway, and waits until it is healthy."""
        self.ours.tree.stop()
        self.ours = self.new_gateway(home, watched=watched, key=key)
        await self.healthy(self.ours)

    def delays(self) -> list[tuple[float, float]]:
        """Ends a gateway that was started with `watched`. Returns one pair for each measurement:
        the time, and the delay of the event loop in seconds."""
        self.ours.tree.stop()
        found = (self.folder / "delays.json").read_bytes()
        return msgspec.json.decode(found, type=list[tuple[float, float]])

    async def healthy(self, target: Target) -> None:
        request, end = encode("GET", "/health"), time.perf_counter() + START_SECONDS
        while (await ask_once(target.port, request, 5.0)).status != 200:
            if time.perf_counter() > end or not target.tree.running:
                shown = target.tree.log.read_text(errors="replace")[-1000:]
                raise DidNotStart(f"{target.name} did not start:\n{shown}")
            await asyncio.sleep(0.005)

    async def settle(self, target: Target) -> None:
        """Waits until the target has finished the work of earlier requests, so that this work is
        not measured."""
        end, before = time.perf_counter() + SETTLE_SECONDS, target.tree.cpu()
        while time.perf_counter() < end:
            await asyncio.sleep(0.3)
            if (now := target.tree.cpu()) - before <= 0.02:
                return
            before = now

    async def behave(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
        body = msgspec.json.encode(behaviour)
        answer = await ask_once(self._model_port, encode("POST", "/control", None, body))
        assert answer.status == 200, answer.told()

    async def counts(self) -> Counts:
        return await self._read("/counts", Counts)

    async def last(self, kind: type[T]) -> T:
        """Returns the body of the last request that reached the model, decoded as `kind`."""
        return await self._read("/last", kind)

    async def _read(self, path: str, kind: type[T]) -> T:
        answer = await ask_once(self._model_port, encode("GET", path))
        return msgspec.json.decode(answer.body, type=kind)

    async def load(self, target: Target, plan: Plan) -> Load:
        load = await ask_much(target, plan, self.behaviour.tokens)
        self.record.count(target, load)
        return load

    async def rounds(self, number: int, plan: Plan, *targets: Target) -> list[Load]:
        """Runs the same load on each target in turn, several times, so that noise of the machine
        affects all targets."""
        loads = [Load(self.behaviour.tokens) for _ in targets]
        for _ in range(number):
            for target, load in zip(targets, loads, strict=True):
                await self.settle(target)
                load.join(await self.load(target, plan))
        return loads

    def stop(self) -> None:
        for target in (self.ours, self.passthrough, self.direct):
            target.tree.stop()


@contextlib.asynccontextmanager
async def staged(record: Record) -> AsyncIterator[Stage]:
    """Starts the processes of a run in a temporary folder, and yields them when they answer."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
    folder = Path(tempfile.mkdtemp(prefix="hermes-bench-", dir=DISK))
    try:
        stage = Stage(folder, record)
        try:
            for target in (stage.direct, stage.passthrough, stage.ours):
                await stage.healthy(target)
            yield stage
        finally:
            stage.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
