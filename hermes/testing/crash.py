"""Kills the gateway, at random moments or at each kill point, and checks what people see.

A kill point is a place in the code where a kill could do damage; see `crash_child`.

- `python -m hermes.testing.crash` sends 2,000 messages, and kills the gateway 20 times.
- With `--points`, each scenario runs once for every kill point, and the gateway is killed at
  this point.
- With `--scenario append --point 'after send 1'`, the gateway is killed at this point only.
- With `--store postgres`, the gateways use PostgreSQL instead of SQLite.
"""

import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import click

from hermes.testing.crash_api import ApiCaller
from hermes.testing.crash_checks import Report, check, refused
from hermes.testing.crash_child import points_file
from hermes.testing.crash_stage import (
    Armed,
    CrashKind,
    SimulatedPerson,
    Stage,
    forked,
    running_model,
    spawned,
)
from hermes.testing.postgres import remove_shared_databases
from hermes.testing.stores import forget_store, stores_on_postgres

AT_ONCE = 5
ALIKE = 3
"""Maximum number of passes at which the gateway is killed, if a scenario passes the same point
several times. Each kill has a run of its own. A kill at a later pass would test nothing new."""
SCENARIO_SECONDS = 20.0
ISOLATED = "spawn-sandbox"
"""The name of the scenario that does the same as `spawn`, with commands that run in the sandbox."""
COMMAND_POINTS = re.compile(r"spawn|TurnCheckpoint")
"""Matches the points in the code at which a command is running or about to run. In the scenario
`spawn-sandbox`, the gateway is killed at these points only, because the other points have nothing
to do with the sandbox."""
CrashScript = Callable[[Stage], Awaitable[None]]


async def _alone(stage: Stage, account: str, kind: CrashKind) -> None:
    await SimulatedPerson(stage, account, "1").ask(kind)


async def _two_queued(stage: Stage) -> None:
    person = SimulatedPerson(stage, "editing", "1")
    sent = [person.say(kind) for kind in ("stream", "plain", "append")]
    for one in sent:
        await person.answered(one)


async def _stopped(stage: Stage) -> None:
    person = SimulatedPerson(stage, "editing", "1")
    sent = person.say("endless")
    await person.begun(sent)
    person.command("/stop")
    await person.answered(sent)
    await person.ask("plain")


async def _stopped_tool(stage: Stage) -> None:
    person = SimulatedPerson(stage, "plain", "1")
    await person.ask("plain")
    sent = person.say("held")
    await stage.until(lambda: stage.calls() > 0)
    person.command("/stop")
    await person.answered(sent)
    # The fake model would refuse this request if the tool call that was stopped had no result in
    # the history.
    await person.ask("plain")


async def _client_tools(stage: Stage, *, session: bool) -> None:
    caller = ApiCaller(stage.home, stage.token(), session=session)
    stage.exchanges.append(await caller.converse())


async def _recovered(stage: Stage) -> None:
    """Kills the gateway while work of every kind is in progress, and waits until the next gateway
    process has finished this work. If `play` was called with a crash point, the next process is
    also killed at this point, during its recovery."""
    spawner, queuer = SimulatedPerson(stage, "plain", "1"), SimulatedPerson(stage, "plain", "2")
    reader, decider = SimulatedPerson(stage, "editing", "1"), SimulatedPerson(stage, "editing", "2")
    asked = decider.say("ask")
    await decider.questioned(asked)
    sent = [(spawner, spawner.say("spawn")), (reader, reader.say("stream"))]
    sent += [(queuer, queuer.say(kind)) for kind in ("stream", "plain")]
    await reader.begun(sent[1][1])
    stage.kill()
    await stage.restarted(1)
    decider.decide(asked)
    for person, one in [*sent, (decider, asked)]:
        await person.answered(one)


def _scenarios() -> Mapping[str, CrashScript]:
    kinds: dict[str, tuple[str, CrashKind]] = {
        "plain": ("plain", "plain"),
        "preview": ("editing", "stream"),
        "append": ("plain", "append"),
        "parallel": ("editing", "both"),
        "ask": ("plain", "ask"),
        "spawn": ("plain", "spawn"),
    }

    def script(account: str, kind: CrashKind) -> CrashScript:
        return lambda stage: _alone(stage, account, kind)

    scripts: dict[str, CrashScript] = {name: script(*how) for name, how in kinds.items()}
    return scripts | {
        "queued": _two_queued,
        "stop": _stopped,
        "stop-tool": _stopped_tool,
        "client-tools": partial(_client_tools, session=False),
        "client-tools-session": partial(_client_tools, session=True),
        "recovery": _recovered,
        ISOLATED: script("plain", "spawn"),
    }


SCENARIOS = _scenarios()


async def play(name: str, model: str, *, point: str = "", count: bool = False) -> "Played":
    """Runs a scenario in a new home. If `point` is given, the gateway is killed at this point. With
    `count`, the result lists the points that the gateway passed."""
    with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
        stage = Stage(Path(folder), model, forked, isolated=name == ISOLATED)
        again = name == "recovery"
        # In the scenario `recovery`, the script kills the first process, so `point` is a point of
        # the second process.
        stage.armed[int(again)] = Armed(fail_at=point, count=count, from_start=again)
        late = ""
        try:
            with anyio.fail_after(SCENARIO_SECONDS):
                async with stage.open():
                    await SCENARIOS[name](stage)
                    await stage.quiet()
        except TimeoutError:
            late = f"not finished in {SCENARIO_SECONDS:.0f} s"
        report = check(stage)
        if late:
            report.violations.insert(0, late)
        listed = points_file(stage.home)
        points = listed.read_text().splitlines() if listed.exists() else []
        forget_store(stage.home)
        return Played(report, points, reached=stage.deaths[-9] > again)


class Played:
    def __init__(self, report: Report, points: list[str], *, reached: bool) -> None:
        self.report = report
        self.points = points
        self.reached = reached
        """Whether the gateway reached the crash point and was killed there."""


class Tally:
    """The results of all runs."""

    def __init__(self) -> None:
        self.played = self.failed = self.missed = 0
        self.seen: Counter[str] = Counter()

    def add(self, name: str, point: str, played: Played) -> None:
        self.played += 1
        if point and not played.reached:
            self.missed += 1
            click.echo(f"{name} did not reach: {point}")
        self.seen.update(played.report.figures)
        if played.report.violations:
            self.failed += 1
            click.echo(f"FAILED {name}, killed {point or 'nowhere'}:")
            for violation in played.report.violations:
                click.echo(f"    {violation}")
            click.echo(
                f"    again: python -m hermes.testing.crash --scenario {name} --point '{point}'"
            )

    def refusals(self, name: str, refused: list[str]) -> None:
        for refusal in refused:
            self.failed += 1
            click.echo(f"FAILED {name}: {refusal}")


async def enumerate_points(names: list[str], point: str, every: int) -> bool:
    """Runs each scenario once for each of its kill points. If `point` is given, uses only this
    point. If `every` is 3, uses only every third point. Returns whether all runs succeeded."""
    tally = Tally()
    limiter = anyio.CapacityLimiter(AT_ONCE)
    since = time.monotonic()

    async def one(name: str, point: str, model: str) -> None:
        async with limiter:
            tally.add(name, point, await play(name, model, point=point))

    async with running_model() as model:
        for name in names:
            points = [point]
            if not point:
                counted = await play(name, model, count=True)
                tally.add(name, "", counted)
                points = [one for one in counted.points if int(one.split()[-1]) <= ALIKE][::every]
                if name == ISOLATED:
                    points = [one for one in points if COMMAND_POINTS.search(one)]
            async with anyio.create_task_group() as group:
                for each in points:
                    group.start_soon(one, name, each, model)
            tally.refusals(name, await refused(model))
            seconds = time.monotonic() - since
            click.echo(f"{seconds:6.1f} s  {name}: {len(points)} points")
    click.echo(
        f"{tally.played} runs, {tally.failed} failed, {tally.missed} did not reach their point; "
        + ", ".join(f"{count} {what}" for what, count in sorted(tally.seen.items()))
    )
    return not tally.failed


MIX: dict[CrashKind, int] = {
    "plain": 40,
    "stream": 20,
    "append": 15,
    "both": 5,
    "ask": 8,
    "steps": 8,
    "spawn": 4,
}
"""The share of each kind of message, in percent."""
WAITING = 0.7
"""The probability with which a person waits for the answer before sending the next message."""


class Storm:
    """People who write while the gateway is killed again and again. After each kill, the people may
    send some more of their messages, so that every kill interrupts work."""

    def __init__(self, stage: Stage, messages: int, chats: int, kills: int, seed: int) -> None:
        self._stage = stage
        self._random = random.Random(seed)  # noqa: S311
        self._kills = kills
        self._share = messages / max(kills, 1)
        self._messages, self._chats = messages, chats

    async def blow(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._kill)
            group.start_soon(self._tell)
            for number in range(self._chats):
                person = SimulatedPerson(
                    self._stage, ("plain", "editing")[number % 2], f"c{number}"
                )
                count = (self._messages - number - 1) // self._chats + 1
                group.start_soon(self._talk, person, self._kinds(count))
            await self._stage.until(lambda: self._stage.answered == self._messages)
            await self._stage.quiet()
            group.cancel_scope.cancel()

    def _kinds(self, count: int) -> list[CrashKind]:
        return self._random.choices(list(MIX), list(MIX.values()), k=count)

    async def _talk(self, person: SimulatedPerson, kinds: list[CrashKind]) -> None:
        waits = [self._random.random() < WAITING for _ in kinds]
        async with anyio.create_task_group() as group:
            for kind, wait in zip(kinds, waits, strict=True):
                await self._stage.until(self._unlocked)
                if kind == "ask":
                    # The next message makes the agent ask a question. The earlier messages must be
                    # answered first, because one of them could otherwise count as the answer to the
                    # question.
                    await person.all_answered()
                if wait or kind == "ask":
                    await person.ask(kind)
                else:
                    group.start_soon(person.answered, person.say(kind))

    def _unlocked(self) -> bool:
        return len(self._stage.sent) < (self._stage.kills + 1) * self._share

    async def _kill(self) -> None:
        for kill in range(self._kills):
            if self._random.random() < 0.2:
                # The pause is shorter than a start, so this kill hits a gateway that still starts
                # or recovers.
                await anyio.sleep(self._random.uniform(0.1, 0.9))
            else:
                sent = int((kill + self._random.random()) * self._share)
                await self._stage.until(lambda sent=sent: len(self._stage.sent) >= sent)  # type: ignore[misc]
                await anyio.sleep(self._random.uniform(0.0, 0.5))
            self._stage.kill()
            await self._stage.restarted(kill + 1)

    async def _tell(self) -> None:
        while True:
            await anyio.sleep(5.0)
            stage = self._stage
            click.echo(
                f"{time.time() - stage.starts[0]:6.1f} s  {len(stage.sent)} sent,"
                f" {stage.answered} answered, {stage.kills} kills"
            )


async def storm(messages: int, chats: int, kills: int, seed: int, seconds: float) -> bool:
    """Kills the gateway at random while people write. Returns whether all promises were kept."""
    since, late = time.monotonic(), ""
    with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
        async with running_model() as model:
            stage = Stage(Path(folder), model, spawned)
            try:
                with anyio.fail_after(seconds):
                    async with stage.open():
                        await Storm(stage, messages, chats, kills, seed).blow()
            except TimeoutError:
                late = f"not finished in {seconds:.0f} s"
            report = check(stage)
            report.violations += await refused(model)
    if late:
        report.violations.insert(0, late)
    click.echo(f"seed {seed}, {time.monotonic() - since:.1f} s")
    for what, figure in {**report.figures, **stage.recovery()}.items():
        click.echo(f"{what:>28}  {figure}")
    for violation in report.violations:
        click.echo(f"VIOLATED {violation}")
    return not report.violations


def use_store(context: click.Context, option: click.Parameter, name: str) -> None:
    """Sets the kind of store that all gateways of this run use."""
    if name == "postgres":
        context.call_on_close(remove_shared_databases)
        context.with_resource(stores_on_postgres())


@click.command(help=__doc__)
@click.option("--messages", default=2000)
@click.option("--chats", default=100)
@click.option("--kills", default=20)
@click.option("--seed", type=int, help="a random one unless given")
@click.option("--seconds", default=150.0, help="for the whole run, at the most")
@click.option(
    "--points",
    is_flag=False,
    flag_value=1,
    default=0,
    help="a kill at every point instead; `--points 3` kills at every third point",
)
@click.option("--scenario", multiple=True, type=click.Choice(list(SCENARIOS)))
@click.option("--point", default="", help="such as 'after send 2'")
@click.option(
    "--store",
    type=click.Choice(["sqlite", "postgres"]),
    default="sqlite",
    expose_value=False,
    callback=use_store,
)
def main(
    messages: int,
    chats: int,
    kills: int,
    seed: int | None,
    seconds: float,
    scenario: tuple[str, ...],
    point: str,
    points: int,
) -> None:
    if points or scenario:
        sound = anyio.run(enumerate_points, list(scenario or SCENARIOS), point, points or 1)
    else:
        seed = random.randrange(1 << 16) if seed is None else seed  # noqa: S311
        sound = anyio.run(storm, messages, chats, kills, seed, seconds)
    click.get_current_context().exit(0 if sound else 1)


if __name__ == "__main__":
    main()
