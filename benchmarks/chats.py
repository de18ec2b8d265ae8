"""Measures a gateway under load from Telegram. Every message must be answered once and in order."""

import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from benchmarks.deliverer import DeliveryResult, PlannedDelivery
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
"""The ways in which calls to the Bot API fail during an outage. One way is an answer that comes too
late."""


@asynccontextmanager
async def _staged(record: Record, name: str, **more: str) -> AsyncIterator[TelegramStage]:
    """Yields a fake Telegram with a gateway. When the block ends, waits until the gateway has done
    all work, and records the broken promises: for example, messages that were answered twice or out
    of order."""
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
    """Measures how fast the gateway answers the messages that were sent while it was down."""
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
    """Checks that a repeated message is answered only once. Every message is delivered three times:
    first normally, then with a new update number, and finally with its old update number, after a
    restart without the stored offset."""
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
    """Measures how fast the gateway sends the waiting replies after an outage, in which the
    platform refuses, loses or delays every call."""
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
    """Checks the order of the answers. People write in many chats, and tools take a random time,
    while the gateway is killed again and again."""
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
    """Measures the gateway while the platform delivers many messages to the gateway's webhook in a
    few seconds."""
    async with _staged(record, "burst", **WEBHOOK) as stage:
        await stage.start()
        began = time.perf_counter()
        results = await _deliver(stage, sizes)
        for one in results:
            if one.status != 200:
                stage.refuse(one.chat, one.token)
        await stage.until(lambda: not stage.unanswered)
        await stage.quiet()
        ended, peak = time.perf_counter(), _peak_memory(stage.gateway.pid)
    accepted = sorted(one.seconds for one in results if one.status == 200)
    refused = [one for one in results if one.status in (429, 503)]
    late = sorted(delay for at, delay in stage.delays if began < at < ended)
    record.put("burst.accepted", len(accepted))
    record.put("burst.unanswered", len(accepted) - record.figures["burst.answered"].ours)
    record.put("burst.lost", sizes.burst - len(accepted) - len(refused))
    record.put("burst.p99", accepted[int(len(accepted) * 0.99)] * 1000)
    record.put("burst.memory", peak)
    record.put("burst.seconds", ended - began)
    record.put("burst.delay", late[int(len(late) * 0.99)] * 1000)


async def _deliver(stage: TelegramStage, sizes: Sizes) -> list[DeliveryResult]:
    """Lets another process deliver the messages, so that the fake server in this process does not
    slow the delivery down."""
    planned = []
    for number in range(sizes.burst):
        chat = FIRST_CHAT + number % sizes.burst_chats
        token = stage.say(chat)
        body = msgspec.json.encode(stage.bot.pending.pop())
        planned.append(PlannedDelivery(chat=chat, token=token, body=body))
    source, result = stage.folder / "planned.json", stage.folder / "results.json"
    source.write_bytes(msgspec.json.encode(planned))
    port, seconds = str(stage.gateway.port), str(sizes.burst_seconds)
    command = [sys.executable, "-m", "benchmarks.deliverer", port, SECRET, seconds]
    await anyio.run_process([*command, str(source), str(result)])
    return msgspec.json.decode(result.read_bytes(), type=list[DeliveryResult])


def _peak_memory(pid: int) -> float:
    """Returns the largest RSS that the process has had, in MB."""
    (line,) = [
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) / 1024
