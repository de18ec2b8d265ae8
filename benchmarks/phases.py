"""The phases of every run: start, memory, latency, throughput, streams, tools, prompt."""

import asyncio
import subprocess
import time
from collections.abc import Callable

import msgspec

from benchmarks.client import ask_once
from benchmarks.load import Plan, Target, median, percentile
from benchmarks.model import TOKEN, Behaviour
from benchmarks.sizes import Sizes
from benchmarks.stage import HERMES, Stage

USUAL = Behaviour()
LONG = Behaviour(tokens=200)
SLOW = Behaviour(ttft=0.5, tokens=100, delay=0.005)
COMMAND_SECONDS = 30.0


async def start(stage: Stage, sizes: Sizes) -> None:
    """Measures the time from the start of a process to its first answer, first for the pass-through
    proxy and then for our gateway."""
    await stage.behave(USUAL)
    stage.passthrough.tree.stop()
    least = [await _started(stage, stage.new_passthrough) for _ in range(sizes.starts)]
    stage.passthrough = stage.new_passthrough()
    await stage.healthy(stage.passthrough)
    stage.ours.tree.stop()
    ours = [await _started(stage, stage.new_gateway) for _ in range(sizes.starts)]
    stage.ours = stage.new_gateway()
    await stage.healthy(stage.ours)
    for key, place in (("start.healthy", 0), ("start.answer", 1)):
        stage.record.put(
            key, median([one[place] for one in ours]), median([one[place] for one in least])
        )


async def _started(stage: Stage, new: Callable[[], Target]) -> tuple[float, float]:
    began = time.perf_counter()
    target = new()
    try:
        await stage.healthy(target)
        healthy = time.perf_counter() - began
        answer = await ask_once(target.port, target.request())
        answered = time.perf_counter() - began
        assert answer.good(stage.behaviour.tokens), answer.told()
    finally:
        target.tree.stop()
    return healthy, answered


async def commands(stage: Stage, sizes: Sizes) -> None:
    """Measures how long some `hermes` commands take."""
    await stage.behave(USUAL)
    env = stage.env("terminal")
    times, said = range(sizes.commands), stage.behaviour.tokens
    version = [await _command(env, b"hermes", 1, "--version") for _ in times]
    chat = [await _command(env, TOKEN, said, "chat", "-q", "hello") for _ in times]
    stage.record.put("cli.version", median(version))
    stage.record.put("cli.chat", median(chat))


async def _command(env: dict[str, str], expected: bytes, count: int, *arguments: str) -> float:
    """Runs the command, and returns the seconds that it took. Fails if its output does not contain
    `expected` exactly `count` times."""
    began = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        HERMES,
        *arguments,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(COMMAND_SECONDS):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    seconds = time.perf_counter() - began
    whole = process.returncode == 0 and out.count(expected) == count
    assert whole, (arguments, out[-300:], err[-300:])
    return seconds


async def memory(stage: Stage, sizes: Sizes) -> None:
    """Measures the memory of a gateway that was just started, and again after some requests."""
    await stage.behave(USUAL)
    await stage.restart()
    await stage.settle(stage.ours)
    started = stage.ours.tree.usage().rss
    least = stage.passthrough.tree.usage().rss
    stage.record.put("memory.started", started, least)
    plan = Plan(count=sizes.used, concurrency=8)
    await stage.load(stage.passthrough, plan)
    await stage.load(stage.ours, plan)
    await stage.settle(stage.ours)
    least = stage.passthrough.tree.usage().rss
    stage.record.put("memory.used", stage.ours.tree.usage().rss, least)


async def latency(stage: Stage, sizes: Sizes) -> None:
    """Sends requests one after another. Measures the CPU time of a turn, and the time that a turn
    takes in addition to the time of the model."""
    await stage.behave(USUAL)
    targets = (stage.direct, stage.passthrough, stage.ours)
    await stage.rounds(1, Plan(count=20), *targets)
    plain = Plan(count=sizes.latency)
    direct, least, ours = await stage.rounds(sizes.rounds, plain, *targets)
    put = stage.record.put
    own = median(direct.totals)
    put("latency.plain", median(ours.totals) - own, median(least.totals) - own)
    late = [percentile(one.totals, 0.95) - own for one in (ours, least)]
    put("latency.plain95", *late)
    put("cpu.plain", ours.cpu_each, least.cpu_each)
    streamed = Plan(count=sizes.latency, stream=True)
    direct, least, ours = await stage.rounds(sizes.rounds, streamed, *targets)
    own = median(direct.firsts)
    put("latency.first", median(ours.firsts) - own, median(least.firsts) - own)
    late = [percentile(one.firsts, 0.95) - own for one in (ours, least)]
    put("latency.first95", *late)
    put("cpu.stream", ours.cpu_each, least.cpu_each)


async def throughput(stage: Stage, sizes: Sizes) -> None:
    """Measures turns per second. In each round, the pass-through proxy is measured right before our
    gateway."""
    await stage.behave(USUAL)
    for concurrency in sizes.concurrencies:
        plan = Plan(count=100_000, concurrency=concurrency, seconds=sizes.seconds)
        least, ours = await stage.rounds(2, plan, stage.passthrough, stage.ours)
        stage.record.put(f"rate.{concurrency}", ours.rate, least.rate)
        if concurrency == 32:
            stage.record.put("cpu.32", ours.cpu_each, least.cpu_each)


async def streams(stage: Stage, sizes: Sizes) -> None:
    """Measures tokens per second with many long answers at once."""
    await stage.behave(LONG)
    plan = Plan(count=sizes.streams, concurrency=32, stream=True)
    targets = (stage.passthrough, stage.ours)
    least, ours = await stage.rounds(sizes.rounds, plan, *targets)
    stage.record.put("tokens.rate", ours.tokens_rate, least.tokens_rate)


async def slow(stage: Stage, sizes: Sizes) -> None:
    """Measures turns per second with a model that is as slow as a real model. Ideally, the turns
    wait only for the model."""
    await stage.behave(SLOW)
    many = sizes.slow_streams
    plan = Plan(count=many * sizes.waves, concurrency=many, stream=True)
    targets = (stage.direct, stage.passthrough, stage.ours)
    direct, least, ours = await stage.rounds(1, plan, *targets)
    stage.record.put("slow.rate", ours.rate, least.rate, direct.rate)


async def tools(stage: Stage, sizes: Sizes) -> None:
    """Measures a turn in which the model reads a file: two model calls and one tool."""
    await stage.behave(msgspec.structs.replace(USUAL, tool=True))
    await stage.load(stage.ours, Plan(count=5))
    await stage.settle(stage.ours)
    load = await stage.load(stage.ours, Plan(count=sizes.tools))
    counts = await stage.counts()
    assert counts.tool_calls == sizes.tools + 5, "the model was not called a second time"
    stage.record.put("tool.turn", median(load.totals))
    stage.record.put("tool.cpu", load.cpu_each)


class Said(msgspec.Struct):
    role: str
    content: msgspec.Raw = msgspec.Raw(b"")


class Prompt(msgspec.Struct):
    messages: list[Said]
    tools: msgspec.Raw = msgspec.Raw(b"")


async def prompt(stage: Stage, sizes: Sizes) -> None:
    """Measures how many characters of prompt the model gets with a one-line message."""
    await stage.behave(USUAL)
    await stage.load(stage.ours, Plan(count=1))
    last = await stage.last(Prompt)
    system = [bytes(one.content) for one in last.messages if one.role in ("system", "developer")]
    characters = sum(len(text.decode()) for text in (*system, bytes(last.tools)))
    stage.record.put("prompt.characters", characters)
