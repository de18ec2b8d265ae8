"""Measures the effect of long sessions, of many conversations at once, and of many stored
sessions."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from benchmarks.client import Answer, Client
from benchmarks.load import Load, Plan, Target, median, percentile
from benchmarks.model import Behaviour
from benchmarks.processes import Usage
from benchmarks.sizes import Sizes
from benchmarks.stage import Stage

USUAL = Behaviour()
SECOND = Behaviour(ttft=1.0)
RAMP = 0.8
"""Seconds within which all conversations start. An answer takes longer than `RAMP`, so when the
last conversation starts, all others are still open."""
CONNECT_SECONDS = 1.0
TICK = 0.02
PROBE_START = 0.7
"""Seconds between the start of the probe (the process that calls GET /health) and the measured
work. The probe needs this time to start."""
YOUNG = 10
"""Number of turns that `growth` measures in each session, in new sessions and in old sessions. The
number is small, so that a new session is still young at the end."""


async def growth(stage: Stage, sizes: Sizes) -> None:
    """Compares turns in young sessions with turns in old sessions, which already have many turns.
    Young and old sessions alternate, so that noise of the machine affects both kinds."""
    await stage.behave(USUAL)
    target, client = stage.ours, Client(stage.ours.port)
    names = range(sizes.grown)
    try:
        grown = Load(stage.behaviour.tokens)
        for name in names:
            await _turns(target, client, f"old-{name}", sizes.old, grown)
        stage.record.count(target, grown)
        young, old = Load(stage.behaviour.tokens), Load(stage.behaviour.tokens)
        await stage.settle(target)
        for name in names:
            await _turns(target, client, f"young-{name}", YOUNG, young)
            await _turns(target, client, f"old-{name}", YOUNG, old)
    finally:
        client.close()
    for load in (young, old):
        stage.record.count(target, load)
    put = stage.record.put
    put("growth.young", median(young.totals))
    put("growth.old", median(old.totals))
    put("growth.ratio", median(old.totals) / median(young.totals))
    put("growth.cpu", old.cpu_each / max(young.cpu_each, 0.01))


async def _turns(target: Target, client: Client, session: str, count: int, load: Load) -> None:
    began, cpu = time.perf_counter(), target.tree.cpu()
    for _ in range(count):
        load.add(await client.ask(target.request(session=session)))
    load.wall += time.perf_counter() - began
    load.cpu += target.tree.cpu() - cpu


class Pressed(msgspec.Struct):
    """The results of a load of many conversations at once."""

    load: Load
    most: Usage
    """The largest memory and the largest number of threads at any moment."""
    delays: list[float]
    """Milliseconds that each GET /health took during the load."""
    open: int
    """Largest number of conversations that waited for the model at the same time."""
    began: float
    ended: float


async def crowd(stage: Stage, sizes: Sizes) -> None:
    """Opens thousands of conversations at once. The model takes a second for each answer."""
    await stage.restart("crowded", watched=True)
    await stage.behave(SECOND)
    least = await press(stage, stage.passthrough, sizes.crowd)
    ours = await press(stage, stage.ours, sizes.crowd)
    stored = await press(stage, stage.ours, sizes.crowd, sessions="crowd")
    put = stage.record.put
    put("crowd.unanswered", len(ours.load.bad), len(least.load.bad))
    put("crowd.open", ours.open, least.open)
    put("crowd.seconds", ours.load.wall, least.load.wall)
    put("crowd.threads", ours.most.threads, least.most.threads)
    put("crowd.memory", ours.most.rss, least.most.rss)
    put("crowd.health", percentile(ours.delays, 0.99), percentile(least.delays, 0.99))
    late = [seconds * 1000 for at, seconds in stage.delays() if ours.began <= at <= ours.ended]
    put("crowd.delay", percentile(late, 0.99))
    put("sessions.unanswered", len(stored.load.bad))
    put("sessions.seconds", stored.load.wall)
    put("sessions.threads", stored.most.threads)
    put("sessions.memory", stored.most.rss)
    await stage.restart()


async def press(stage: Stage, target: Target, count: int, sessions: str = "") -> Pressed:
    """Runs a turn in each of `count` conversations, all open at once.

    If `sessions` is given, the conversations are stored sessions, and `sessions` is the first part
    of their names. Otherwise the conversations are stateless requests.
    """
    await stage.behave(stage.behaviour)
    clients = [Client(target.port) for _ in range(count)]
    load = Load(stage.behaviour.tokens)
    try:
        await _connect(clients)
        seen = await probed(stage, target, partial(_speak, target, clients, load, sessions))
    finally:
        for client in clients:
            client.close()
    load.wall = seen.seconds
    stage.record.count(target, load)
    return Pressed(
        load=load,
        most=seen.most,
        delays=seen.delays,
        open=(await stage.counts()).most_open,
        began=seen.began,
        ended=seen.began + seen.seconds,
    )


class Probed(msgspec.Struct):
    """The resources that a target used during some work, and the time that its answers to GET
    /health took."""

    began: float
    seconds: float
    before: Usage
    most: Usage
    """The largest memory and the largest number of threads at any moment."""
    delays: list[float]
    """Milliseconds that each GET /health took during the work."""
    calm: list[float]
    """Milliseconds that each GET /health took before the work began."""

    @property
    def rss_growth(self) -> float:
        """Growth of the memory in megabytes."""
        return self.most.rss - self.before.rss


async def probed(stage: Stage, target: Target, work: Callable[[], Awaitable[None]]) -> Probed:
    """Calls `work`, and measures the target meanwhile: its resources, and the time of GET /health,
    which another process calls again and again."""
    used = [target.tree.usage()]
    probe = await _probe(stage, target)
    try:
        async with asyncio.TaskGroup() as group:
            sampling = group.create_task(_sample(target, used))
            await asyncio.sleep(PROBE_START)
            began = time.perf_counter()
            await work()
            seconds = time.perf_counter() - began
            sampling.cancel()
        # `communicate` closes stdin only if it is given input. The probe ends when stdin is closed.
        out, err = await probe.communicate(b"")
        assert probe.returncode == 0, err.decode()
    finally:
        if probe.returncode is None:
            probe.kill()
    seen = msgspec.json.decode(out, type=list[tuple[float, float]])
    return Probed(
        began=began,
        seconds=seconds,
        before=used[0],
        most=Usage(rss=max(one.rss for one in used), threads=max(one.threads for one in used)),
        delays=[delay * 1000 for due, delay in seen if began <= due <= began + seconds],
        calm=[delay * 1000 for due, delay in seen if due < began],
    )


async def _connect(clients: list[Client]) -> None:
    """Opens the connections of all clients, a few at a time."""
    step = max(1, int(len(clients) * TICK / CONNECT_SECONDS))
    for first in range(0, len(clients), step):
        async with asyncio.TaskGroup() as group:
            for client in clients[first : first + step]:
                group.create_task(client.connect())
        await asyncio.sleep(TICK)


async def _probe(stage: Stage, target: Target) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.probe",
        str(target.port),
        str(TICK),
        env=stage.env("probe"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def _sample(target: Target, seen: list[Usage]) -> None:
    while True:
        seen.append(target.tree.usage())
        await asyncio.sleep(0.2)


async def _speak(target: Target, clients: list[Client], load: Load, sessions: str) -> None:
    """Sends all requests within `RAMP` seconds, and waits for their answers."""
    began = time.perf_counter()

    async def ask(number: int, client: Client) -> None:
        await asyncio.sleep(began + RAMP * number / len(clients) - time.perf_counter())
        session = f"{sessions}-{number}" if sessions else ""
        answer: Answer = await client.ask(target.request(stream=True, session=session), 60.0)
        load.add(answer)

    async with asyncio.TaskGroup() as group:
        for number, client in enumerate(clients):
            group.create_task(ask(number, client))


async def stored(stage: Stage, sizes: Sizes) -> None:
    """Measures whether turns are slower when thousands of sessions are stored."""
    await stage.behave(USUAL)
    await stage.restart("stored")
    few = Plan(count=100)
    await stage.load(stage.ours, Plan(count=20))
    empty = await stage.load(stage.ours, few)
    filling = Plan(count=sizes.stored, concurrency=32, seconds=120, sessions="stored")
    await stage.load(stage.ours, filling)
    await stage.settle(stage.ours)
    full = await stage.load(stage.ours, few)
    stage.record.put("stored.ratio", median(full.totals) / median(empty.totals))
