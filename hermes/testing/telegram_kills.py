"""Kills a gateway at random while people write on Telegram and the Bot API fails.

Every message must be answered once, completely and in order. Sometimes the Bot API refuses all
calls for a chat for some time (a penalty window). The gateway must make no call for the chat while
it knows of such a window.
"""

import random
import tempfile
import time
from pathlib import Path

import anyio
import click

from hermes.testing.crash import WAITING, use_store
from hermes.testing.crash_checks import Report
from hermes.testing.gateway_process import model_process
from hermes.testing.stores import forget_store
from hermes.testing.telegram_promises import check_promises, report_lines
from hermes.testing.telegram_records import ScriptedFailure
from hermes.testing.telegram_stage import TelegramStage, telegram_stage
from hermes.types.value import Value

PAUSING = 'tool:pause{"token":"TOKEN","seconds":SECONDS}'
"""A message that makes the agent run the tool `pause`. TOKEN and SECONDS are placeholders."""
QUESTIONS = ("how are you today", "tokens:60 delay:0.02", PAUSING)
LONGEST_PAUSE = 0.3
FAILURES = (
    ScriptedFailure(),
    ScriptedFailure(done=True),
    ScriptedFailure(status=502, description="Bad Gateway"),
    ScriptedFailure(status=429, description="Too Many Requests: retry after 2", retry_after=2),
)
FIRST_CHAT = 1000


class StormSize(Value):
    """Says how many messages people send in a `TelegramStorm`, and how often something fails."""

    chats: int = 200
    messages: int = 20
    """Number of messages in each chat."""
    kills: int = 20
    cuts: int = 20
    """Number of times at which all connections are cut."""
    failing: float = 0.05
    """The probability that a call fails."""
    penalties: float = 0.03
    """The probability that a call makes the Bot API refuse all calls for a random chat for some
    time (a penalty window)."""
    people: int = 1000
    """Number of people who write at the same time."""
    questions: tuple[str, ...] = QUESTIONS
    drafts: bool = False
    """Whether the Bot API has drafts."""
    seed: int = 0


class TelegramStorm:
    """People who write while the gateway is killed and the Bot API fails.

    The messages are divided into equal shares, one for each process of the gateway. People begin
    the next share only after the next kill, so that every kill interrupts work.
    """

    def __init__(self, stage: TelegramStage, size: StormSize) -> None:
        self._stage = stage
        self._size = size
        self._random = random.Random(size.seed)  # noqa: S311
        self._people = anyio.CapacityLimiter(size.people)
        self._sent = 0
        self._share = size.chats * size.messages / (size.kills + 1)

    async def blow(self) -> None:
        await self._stage.start()
        self._stage.server.has_drafts = self._size.drafts
        self._stage.server.trouble = self._trouble
        async with anyio.create_task_group() as telling:
            telling.start_soon(self._tell)
            async with anyio.create_task_group() as group:
                group.start_soon(self._kill)
                group.start_soon(self._cut)
                for number in range(self._size.chats):
                    group.start_soon(self._talk, FIRST_CHAT + number)
            await self._stage.until(lambda: not self._stage.unanswered)
            await self._stage.quiet()
            telling.cancel_scope.cancel()

    async def _talk(self, chat: int) -> None:
        async with self._people:
            for _ in range(self._size.messages):
                await self._stage.until(self._unlocked)
                self._sent += 1
                token = self._stage.say(chat, self._question())
                if self._random.random() < WAITING:
                    await self._stage.answered(token)

    def _question(self) -> str:
        seconds = round(self._random.uniform(0.0, LONGEST_PAUSE), 3)
        return self._random.choice(self._size.questions).replace("SECONDS", str(seconds))

    def _unlocked(self) -> bool:
        return self._sent < (self._stage.kills + 1) * self._share

    async def _kill(self) -> None:
        for kill in range(self._size.kills):
            sent = int((kill + self._random.random()) * self._share)
            await self._stage.until(lambda sent=sent: self._sent >= sent)  # type: ignore[misc]
            await anyio.sleep(self._random.uniform(0.0, 1.0))
            await self._stage.kill()
            await self._stage.start()

    def _trouble(self) -> ScriptedFailure | None:
        """Returns the way in which the next call fails, or None if the call succeeds. Sometimes
        this method also makes the fake server refuse all calls for a random chat for a while."""
        if self._random.random() < self._size.penalties:
            chat = FIRST_CHAT + self._random.randrange(self._size.chats)
            self._stage.server.penalize(chat, self._random.uniform(0.5, 4.0))
        return self._random.choice(FAILURES) if self._random.random() < self._size.failing else None

    async def _cut(self) -> None:
        total = self._size.chats * self._size.messages
        for after in sorted(self._random.randrange(total) for _ in range(self._size.cuts)):
            await self._stage.until(lambda after=after: self._sent > after)  # type: ignore[misc]
            await anyio.sleep(self._random.uniform(0.0, 1.0))
            self._stage.server.cut()

    async def _tell(self) -> None:
        began = time.monotonic()
        while True:
            await anyio.sleep(10.0)
            click.echo(
                f"{time.monotonic() - began:6.1f} s  {self._sent} sent,"
                f" {self._stage.unanswered} unanswered, {self._stage.kills} kills"
            )


async def storm(size: StormSize, seconds: float) -> Report:
    """Runs a `TelegramStorm` in a new home. Returns a report of what went wrong, such as a message
    that was lost or answered twice."""
    late = ""
    with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
        home = Path(folder)
        async with model_process() as model, telegram_stage(home, model) as stage:
            with anyio.move_on_after(seconds) as limit:
                await TelegramStorm(stage, size).blow()
            if limit.cancelled_caught:
                late = f"not finished in {seconds:.0f} s: {stage.unanswered} unanswered"
            await stage.finish()
            report = check_promises(stage)
        forget_store(home)
    if late:
        report.violations.insert(0, late)
    return report


@click.command(help=__doc__)
@click.option("--chats", default=200)
@click.option("--messages", default=20, help="of each chat")
@click.option("--kills", default=20)
@click.option("--cuts", default=20, help="of all connections")
@click.option("--drafts", is_flag=True, help="let the Bot API have drafts")
@click.option("--seed", type=int, help="a random one unless given")
@click.option("--seconds", default=3600.0, help="for the whole run, at the most")
@click.option(
    "--store",
    type=click.Choice(["sqlite", "postgres"]),
    default="sqlite",
    expose_value=False,
    callback=use_store,
)
def main(
    chats: int,
    messages: int,
    kills: int,
    cuts: int,
    seed: int | None,
    seconds: float,
    *,
    drafts: bool,
) -> None:
    seed = random.randrange(1 << 16) if seed is None else seed  # noqa: S311
    size = StormSize(
        chats=chats, messages=messages, kills=kills, cuts=cuts, seed=seed, drafts=drafts
    )
    began = time.monotonic()
    report = anyio.run(storm, size, seconds)
    click.echo(f"seed {seed}, {time.monotonic() - began:.1f} s")
    for line in report_lines(report):
        click.echo(line)
    click.get_current_context().exit(1 if report.violations else 0)


if __name__ == "__main__":
    main()
