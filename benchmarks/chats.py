"""Loads of messages on Telegram, each of which must be answered once and in order."""

import random
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from benchmarks.client import Client, encode
from benchmarks.record import Record
from benchmarks.sizes import Sizes
from benchmarks.stage import DISK
from hermes.testing.crash_checks import Report
from hermes.testing.gateway_process import model_process
from hermes.testing.stores import forget_store
from hermes.testing.telegram_kills import FIRST_CHAT, PAUSING, StormSize, TelegramStorm
from hermes.testing.telegram_promises import check_promises
from hermes.testing.telegram_records import ScriptedFailure
from hermes.testing.telegram_stage import TRIAL_TOKEN, TelegramStage, telegram_stage

SECRET = "benchmark-secret"
WEBHOOK = {
    "TELEGRAM_WEBHOOK_URL": "https://gateway.test/telegram",
    "TELEGRAM_WEBHOOK_SECRET": SECRET,
}
OUTAGE = (
    ScriptedFailure(),
    ScriptedFailure(done=True),
    ScriptedFailure(status=502, description="Bad Gateway"),
    ScriptedFailure(after=35.0),
    ScriptedFailure(status=429, description="Too Many Requests: retry after 10", retry_after=10),
)
"""The ways in which calls fail during an outage. One of them is a timeout."""


@asynccontextmanager
async def _staged(record: Record, name: str, **more: str) -> AsyncIterator[TelegramStage]:
    """Yields a stage. At the end, the promises are checked and the broken ones are recorded."""
    with tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=DISK) as folder:
        home = Path(folder)
        async with model_process() as model, telegram_stage(home, model, **more) as stage:
            yield stage
            await stage.quiet()
            await stage.finish()
            _judge(record, name, check_promises(stage))
        forget_store(home)


def _judge(record: Record, name: str, report: Report) -> None:
    messages = report.figures["messages"]
    record.turns += messages
    record.put(f"{name}.answered", messages - report.figures["lost"])
    for kind in ("twice", "order", "overlap", "early"):
        record.put(f"{name}.{kind}", report.figures[kind])
    for violation in report.violations:
        record.fail(f"{name}: {violation}")


async def waiting(record: Record, sizes: Sizes) -> None:
    """Messages wait at the platform while the gateway is down."""
    async with _staged(record, "waiting") as stage:
        await stage.start()
        await stage.answered(stage.say(FIRST_CHAT))
        await stage.kill()
        for number in range(sizes.waiting - 1):
            stage.say(FIRST_CHAT + number % sizes.waiting_chats)
        await anyio.sleep(sizes.down_seconds)
        await stage.start()
        began = time.monotonic()
        await stage.until(lambda: not stage.unanswered)
        record.put("waiting.seconds", time.monotonic() - began)


async def repeats(record: Record, sizes: Sizes) -> None:
    """Every update is delivered three times: with a new number, and with the old number after a
    restart that has lost the offset."""
    async with _staged(record, "repeats") as stage:
        await stage.start()
        for number in range(sizes.repeats):
            stage.say(FIRST_CHAT + number % sizes.repeat_chats)
            if number == sizes.repeats // 2:
                await stage.kill()
                stage.server.redeliver(TRIAL_TOKEN)
                await stage.start()
        stage.server.redeliver(TRIAL_TOKEN)
        await stage.until(lambda: not stage.unanswered and not stage.bot.pending)
        await stage.finish()
        await stage.forget_offset()
        stage.server.forget_acknowledgements(TRIAL_TOKEN)
        await stage.start()
        await stage.until(lambda: not stage.bot.pending)
        await stage.quiet()
        record.put("repeats.turns", stage.count("turns"))
        record.put("repeats.surplus", abs(stage.count("turns") - sizes.repeats))


async def outage(record: Record, sizes: Sizes) -> None:
    """The platform refuses, loses and delays every call for some time, and then recovers."""
    chance = random.Random(7)
    async with _staged(record, "outage") as stage:
        await stage.start()
        await stage.until(lambda: bool(stage.bot.polls))
        stage.server.trouble = lambda: chance.choice(OUTAGE)
        began = time.monotonic()
        for number in range(sizes.owed):
            stage.say(FIRST_CHAT + number % sizes.owed_chats)
        await stage.until(
            lambda: stage.count("turns where state not in ('running', 'suspended')") == sizes.owed
        )
        await anyio.sleep(max(sizes.outage_seconds - (time.monotonic() - began), 0.0))
        delivered = len(stage.answers)
        stage.server.trouble = lambda: None
        recovered = time.monotonic()
        await stage.until(lambda: not stage.unanswered)
        record.put("outage.seconds", time.monotonic() - recovered)
        record.put("outage.owed", sizes.owed - delivered)


async def ordered(record: Record, sizes: Sizes) -> None:
    """Many chats with tools that take a random time, while the gateway is killed."""
    size = StormSize(
        chats=sizes.ordered_chats,
        messages=sizes.ordered_messages,
        kills=sizes.ordered_kills,
        cuts=0,
        failing=0.0,
        penalties=0.0,
        people=64,
        questions=(PAUSING,),
        seed=9,
    )
    async with _staged(record, "ordered") as stage:
        await TelegramStorm(stage, size).blow()


async def burst(record: Record, sizes: Sizes) -> None:
    """Many messages are delivered to the webhook at once."""
    async with _staged(record, "burst", **WEBHOOK) as stage:
        await stage.start()
        began, statuses, took = time.perf_counter(), list[int](), list[float]()
        await _deliver(stage, sizes, statuses, took)
        await stage.until(lambda: not stage.unanswered)
        await stage.quiet()
        ended, peak = time.perf_counter(), _peak_memory(stage.gateway.pid)
    took.sort()
    accepted = statuses.count(200)
    refused = statuses.count(429) + statuses.count(503)
    record.put("burst.accepted", accepted)
    record.put("burst.lost", sizes.burst - accepted - refused)
    record.put("burst.p99", took[int(len(took) * 0.99)] * 1000)
    record.put("burst.memory", peak)
    record.put("burst.seconds", ended - began)
    late = sorted(delay for at, delay in stage.delays if began < at < ended)
    record.put("burst.delay", late[int(len(late) * 0.99)] * 1000)


async def _deliver(
    stage: TelegramStage, sizes: Sizes, statuses: list[int], took: list[float]
) -> None:
    """Delivers the updates at an even rate, but those of one chat one after the other, as Telegram
    does."""
    turns = {FIRST_CHAT + number: anyio.Lock() for number in range(sizes.burst_chats)}
    idle: list[Client] = []

    async def deliver(chat: int) -> None:
        headers = {"X-Telegram-Bot-Api-Secret-Token": SECRET}
        async with turns[chat]:
            token = stage.say(chat)
            body = msgspec.json.encode(stage.bot.pending.pop())
            began = time.perf_counter()
            client = idle.pop() if idle else Client(stage.gateway.port)
            answer = await client.ask(encode("POST", "/telegram", headers, body))
            idle.append(client)
            took.append(time.perf_counter() - began)
            statuses.append(answer.status)
            if answer.status != 200:
                stage.refuse(chat, token)

    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for number in range(sizes.burst):
            due = began + number * sizes.burst_seconds / sizes.burst
            await anyio.sleep(max(due - time.perf_counter(), 0.0))
            group.start_soon(deliver, FIRST_CHAT + number % sizes.burst_chats)
    for client in idle:
        client.close()


def _peak_memory(pid: int) -> float:
    """Returns the largest RSS that the process has had, in MB."""
    (line,) = [
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) / 1024
