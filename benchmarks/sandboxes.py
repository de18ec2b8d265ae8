"""Measures the sandbox: the time that it adds to a command, the time until it ends a command that
exceeds a limit, and whether a link that replaces a folder leads the file tools out of the
workspace."""

import tempfile
import time
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
import psutil

from benchmarks.client import ask_once
from benchmarks.crowds import Probed, probed
from benchmarks.load import median, percentile
from benchmarks.model import Behaviour
from benchmarks.record import Record
from benchmarks.sizes import Sizes
from benchmarks.stage import Stage
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.local import LocalBackend
from hermes.boundary.execution.sandbox import SANDBOX_BACKEND
from hermes.control.routing import DEFAULT_AGENT
from hermes.testing.link_races import FILE_RACES, exchanged_link, is_intact
from hermes.testing.resource_attacks import RESOURCE_ATTACKS, STEPS_FILE, ResourceAttack
from hermes.testing.sandbox_contract import RecordedCommand
from hermes.testing.turns import a_turn
from hermes.types.errors import ToolFailed
from hermes.types.execution import BackendOptions, CommandLimits, Sandbox, SandboxScope

ATTACKED = CommandLimits(processes=200, memory=300_000_000, workspace_bytes=300_000_000)
"""The limits of the sandbox that is attacked."""
ATTACK_SECONDS = 60.0
REAPED = 0.2
"""Seconds within which the processes of the last command are reaped, so that their CPU time is
known."""


async def sandbox(record: Record, sizes: Sizes) -> None:
    """Measures how long the command `true` takes, alternately with and without the sandbox. Then
    measures the CPU time of both cases."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = child_environment({})
        options = BackendOptions(
            processes=folder / "processes",
            environment=environment,
            sandboxes=folder / "sandboxes",
            own_workspaces=True,
        )
        scope = SandboxScope(agent=DEFAULT_AGENT, session=a_turn().session, workspace=name)
        bare, isolated = (
            LocalBackend(folder / "processes", environment),
            SANDBOX_BACKEND.make(options),
        )
        backends = (await bare.open(scope), await isolated.open(scope))
        try:
            for one in backends:
                await _seconds(one)
            pairs = [[await _seconds(one) for one in backends] for _ in range(sizes.sandboxed)]
            least_cpu, our_cpu = [await _cpu_seconds(one, sizes.sandboxed) for one in backends]
        finally:
            await bare.aclose()
            await isolated.aclose()
    least, ours = (median([pair[at] for pair in pairs]) for at in (0, 1))
    record.put("sandbox.command", 1000 * (ours - least))
    record.put("sandbox.cpu", 1000 * (our_cpu - least_cpu))


async def _seconds(sandbox: Sandbox) -> float:
    began = time.perf_counter()
    outcome = await sandbox.run("true", RecordedCommand(), seconds=60.0)
    assert outcome.code == 0, outcome.text
    return time.perf_counter() - began


async def _cpu_seconds(sandbox: Sandbox, number: int) -> float:
    """Returns the CPU time of a command, including that of this process and of the supervisors."""
    await anyio.sleep(REAPED)
    before = _cpu()
    for _ in range(number):
        await _seconds(sandbox)
    await anyio.sleep(REAPED)
    return (_cpu() - before) / number


def _cpu() -> float:
    own = psutil.Process()
    return sum(sum(one.cpu_times()[:4]) for one in (own, *own.children()))


async def limits(stage: Stage, sizes: Sizes) -> None:
    """Lets the agent run a fork bomb, a memory hog and a disk filler, and calls GET /health
    meanwhile."""
    home, limit = "attacked", ATTACKED
    stage.env(home)
    (stage.folder / home / "config.yaml").write_text(
        'approvals:\n  mode: "off"\n'
        f"terminal:\n  max_processes: {limit.processes}\n"
        f"  max_memory_mb: {limit.memory // 1_000_000}\n"
        f"  max_workspace_mb: {limit.workspace_bytes // 1_000_000}\n"
    )
    await stage.restart(home)
    delays, calm, slowest = [0.0], [0.0], 0.0
    for make in RESOURCE_ATTACKS * sizes.attacks:
        seen, ended_after = await _attacked(stage, make(limit), stage.folder / home / "workspace")
        slowest = max(slowest, ended_after)
        delays += seen.delays
        calm += seen.calm
    stage.record.put("limits.ended", slowest)
    stage.record.put("limits.health", percentile(delays, 0.99))
    stage.record.put("limits.calm", percentile(calm, 0.99))


async def _attacked(stage: Stage, attack: ResourceAttack, workspace: Path) -> tuple[Probed, float]:
    """Lets the agent run the attack. Returns the measurements, and the seconds between the moment
    at which the attack exceeded its limit and the answer of the agent."""
    for old in (workspace / STEPS_FILE, *workspace.glob("filled.*")):
        old.unlink(missing_ok=True)
    (workspace / "attack.sh").write_text(attack.command)
    await stage.behave(Behaviour(command="bash attack.sh"))
    ended = 0.0

    async def run() -> None:
        nonlocal ended
        answer = await ask_once(stage.ours.port, stage.ours.request(), ATTACK_SECONDS)
        ended = time.time()
        assert answer.good(stage.behaviour.tokens), answer.told()

    seen = await probed(stage, stage.ours, run)
    assert attack.limit.encode() in bytes(await stage.last(msgspec.Raw)), "no limit was exceeded"
    return seen, ended - attack.exceeded_at(workspace)


async def races(record: Record, sizes: Sizes) -> None:
    """Uses the file tools on a path while another process keeps replacing a folder of this path by
    a link."""
    escapes = refused = 0
    with tempfile.TemporaryDirectory() as name:
        root = Path(name, "outside", "work")

        def race() -> None:
            nonlocal escapes, refused
            for number in range(sizes.races):
                try:
                    escapes += not FILE_RACES[number % len(FILE_RACES)](root)
                except ToolFailed:
                    refused += 1

        with exchanged_link(root):
            await anyio.to_thread.run_sync(race)
        escapes += not is_intact(root)
    assert 0 < refused < sizes.races, "the links were not exchanged"
    record.put("races.tries", sizes.races)
    record.put("races.escapes", escapes)
