"""Runs a gateway for a long time under mixed load, attacks and kills, and measures whether its use
of resources grows."""

import asyncio
import contextlib
import sys
import time
from pathlib import Path

import psutil

from benchmarks.attacks import Attacks
from benchmarks.curve import Sample, growth, minutes, table
from benchmarks.load import Target
from benchmarks.mixed_load import MixedLoad
from benchmarks.processes import Tree, free_port
from benchmarks.sizes import Sizes
from benchmarks.stage import HERMES, KEY, Stage

HOME = "soak"
SAMPLE_SECONDS = 2.0
KILL_SECONDS = 120.0
KILLED_SHARE = 0.5
"""Share of the time in which the gateway is killed again and again. In the rest of the time the
gateway is not killed, so that the growth of a single process can be measured."""
WARM_UP_SECONDS = 90.0


class Soak:
    """A gateway that is started again on the same home and port after it was killed."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._port, model_port = free_port(), free_port()
        self._model = Tree(
            [sys.executable, "-m", "hermes.testing.model", "--port", str(model_port)],
            stage.env(HOME),
            stage.folder / "soak-model.log",
        )
        upstream = f"http://127.0.0.1:{model_port}/v1"
        self._env = {**stage.env(HOME), "HERMES_CUSTOM_BASE_URL": upstream}
        self._home = Path(self._env["HERMES_HOME"])
        self._began = time.monotonic()
        self.load = MixedLoad(self._port, KEY)
        self.attacks = Attacks(self._port, KEY)
        self.samples: list[Sample] = []
        self.starts = 0

    async def start(self) -> None:
        command = [str(HERMES), "gateway", "run", "--port", str(self._port)]
        self._tree = Tree(command, self._env, self._stage.folder / "soak.log")
        self.starts += 1
        await self._stage.healthy(Target("ours", self._port, "hermes-agent", KEY, self._tree))

    def stop(self) -> None:
        self._tree.stop()
        self._model.stop()

    async def kill(self, every: float, seconds: float) -> None:
        """Kills the gateway every `every` seconds, for `seconds` in total."""
        end = time.monotonic() + seconds
        while time.monotonic() + every <= end:
            await asyncio.sleep(every)
            self._tree.kill()
            await self.start()

    async def sample(self) -> None:
        """Records the resources that the gateway uses, until the task is cancelled."""
        while True:
            with contextlib.suppress(psutil.Error, FileNotFoundError):
                self.samples.append(self._sample())
            await asyncio.sleep(SAMPLE_SECONDS)

    def _sample(self) -> Sample:
        root = self._tree.root
        files = (self._home / "hermes.db", self._home / "hermes.db-wal")
        return Sample(
            at=time.monotonic() - self._began,
            starts=self.starts,
            rss=root.memory_info().rss / 2**20,
            descriptors=root.num_fds(),
            threads=root.num_threads(),
            turns=self.load.turns,
            attacks=self.attacks.count,
            stored=sum(path.stat().st_size for path in files) / 1e6,
        )


async def soak(stage: Stage, sizes: Sizes) -> None:
    """Runs mixed load and attacks. Kills the gateway again and again in the first half of the time,
    and not in the second half."""
    run, seconds = Soak(stage), sizes.soak_minutes * 60
    try:
        await run.start()
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(work()) for work in (run.load.run, run.attacks.run, run.sample)
            ]
            every = min(KILL_SECONDS, seconds * KILLED_SHARE / 2)
            began = time.monotonic()
            await run.kill(every, seconds * KILLED_SHARE)
            await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))
            for task in tasks:
                task.cancel()
    finally:
        run.stop()
    _judge(stage, run, seconds)


def _judge(stage: Stage, run: Soak, seconds: float) -> None:
    grown = growth(run.samples, min(WARM_UP_SECONDS, seconds / 10))
    put = stage.record.put
    put("soak.turns", run.load.turns)
    put("soak.unanswered", len(run.load.failures))
    put("soak.attacks", run.attacks.count)
    put("soak.kills", run.starts - 1)
    put("soak.rss", grown.rss)
    put("soak.descriptors", grown.descriptors)
    put("soak.threads", grown.threads)
    for failure in run.load.failures:
        stage.record.fail(f"soak: {failure}")
    stage.record.notes.append(table(minutes(run.samples)))
