"""Compares the CPU time per turn of this checkout with the CPU time of another checkout. The
measurements of the two checkouts alternate.

    python -m benchmarks.compare /path/to/other/checkout

The other checkout needs a `.venv` of its own. `make check` in that checkout creates it.
"""

import statistics
import sys
from pathlib import Path

import anyio
import click
import msgspec

from benchmarks.load import Plan, Target
from benchmarks.processes import Tree, free_port
from benchmarks.record import Record
from benchmarks.stage import KEY, Stage, staged

WARM = 200
NO_COMMANDS = "terminal: {backend: none}\n"
"""The settings of both gateways. Without them, the two checkouts could have different default
backends, and so offer the model different tools."""
KINDS = {
    "plain": Plan(count=0, concurrency=16),
    "streamed": Plan(count=0, concurrency=16, stream=True),
    "stored sessions": Plan(count=0, concurrency=16, sessions="s"),
}


def other_gateway(stage: Stage, checkout: Path) -> Target:
    port = free_port()
    env = {**stage.env("other"), "PYTHONPATH": str(checkout)}
    command = [str(checkout / ".venv/bin/hermes"), "gateway", "run", "--port", str(port)]
    return Target("other", port, "hermes-agent", KEY, Tree(command, env, stage.folder / "o.log"))


async def compare(checkout: Path, pairs: int, count: int) -> None:
    """Prints, for each kind of load, the milliseconds of CPU time per turn of both checkouts, and
    the median of their ratios."""
    async with staged(Record()) as stage:
        for home in ("home", "other"):
            (stage.folder / home).mkdir(exist_ok=True)
            (stage.folder / home / "config.yaml").write_text(NO_COMMANDS)
        await stage.restart()
        other = other_gateway(stage, checkout)
        try:
            await stage.healthy(other)
            for name, plan in KINDS.items():
                await _pairs(stage, other, name, msgspec.structs.replace(plan, count=count), pairs)
        finally:
            other.tree.stop()
        assert not stage.record.errors, stage.record.samples


async def _pairs(stage: Stage, other: Target, name: str, plan: Plan, pairs: int) -> None:
    for target in (stage.ours, other):
        await stage.load(target, msgspec.structs.replace(plan, count=WARM, sessions=""))
    ratios, mine, theirs = [], [], []
    for number in range(pairs):
        # Every round uses new sessions. With the same sessions, each round would have longer
        # histories.
        sessions = f"{plan.sessions}-{number}" if plan.sessions else ""
        planned = msgspec.structs.replace(plan, sessions=sessions)
        order = [stage.ours, other] if number % 2 else [other, stage.ours]
        cpu = {}
        for target in order:
            await stage.settle(target)
            cpu[target.name] = (await stage.load(target, planned)).cpu_each
        mine.append(cpu["ours"])
        theirs.append(cpu["other"])
        ratios.append(cpu["ours"] / cpu["other"])
    shown = " ".join(f"{ratio:.3f}" for ratio in ratios)
    print(
        f"{name}: {statistics.median(mine):.3f} ms here, {statistics.median(theirs):.3f} ms there,"
        f" median ratio {statistics.median(ratios):.3f} ({shown})",
        flush=True,
    )


@click.command()
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--pairs", default=9, show_default=True, help="Alternating pairs of each kind.")
@click.option("--count", default=1200, show_default=True, help="Turns in each half of a pair.")
def main(checkout: Path, pairs: int, count: int) -> None:
    """Compare the CPU time per turn of this checkout with the CPU time of another checkout."""
    options = {"use_uvloop": sys.platform != "win32"}
    anyio.run(compare, checkout.resolve(), pairs, count, backend_options=options)


if __name__ == "__main__":
    main()
