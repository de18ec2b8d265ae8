"""Counts the CPU instructions per turn of this checkout and of another checkout.

    python -m benchmarks.instructions /path/to/other/checkout

Other programs do not change the counts, so this comparison also works on a busy machine. The counts
leave out the kernel. A difference of up to 2 % between the checkouts is noise. The gateways run
under valgrind, which must be installed. The other checkout needs a `.venv` of its own.
"""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import anyio
import click
import msgspec

from benchmarks import stage as stages
from benchmarks.compare import KINDS, NO_COMMANDS
from benchmarks.load import Plan, Target
from benchmarks.processes import Tree, free_port
from benchmarks.record import Record
from benchmarks.stage import KEY, Stage, staged

START_SECONDS = 300.0
"""Time limit for the start of a gateway, which is about 40 times slower under valgrind."""
TURN_SECONDS = 600.0
DUMP_SECONDS = 60.0
WARM = 60
CONCURRENCY = 8
TOTAL = re.compile(r"^summary: (\d+)", re.MULTILINE)


def counted_gateway(stage: Stage, name: str, checkout: Path) -> Target:
    """Starts the gateway of a checkout under valgrind."""
    port, env = free_port(), {**stage.env(name), "PYTHONPATH": str(checkout)}
    (stage.folder / name / "config.yaml").write_text(NO_COMMANDS)
    python, hermes = checkout / ".venv/bin/python", checkout / ".venv/bin/hermes"
    counter = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={_dump(stage, name)}"]
    command = [*counter, str(python), str(hermes), "gateway", "run", "--port", str(port)]
    return Target(name, port, "hermes-agent", KEY, Tree(command, env, stage.folder / f"{name}.log"))


def _dump(stage: Stage, name: str) -> Path:
    return stage.folder / f"{name}.callgrind"


async def counted(stage: Stage, target: Target, plan: Plan) -> float:
    """Runs the load, and returns the instructions per turn."""
    pid, dump = str(target.tree.root.pid), _dump(stage, target.name)
    warm = msgspec.structs.replace(plan, count=WARM, sessions=plan.sessions and "warm")
    await stage.load(target, warm)
    await stage.settle(target)
    subprocess.run(["callgrind_control", "-z", pid], check=True, capture_output=True)
    load = await stage.load(target, plan)
    subprocess.run(["callgrind_control", "-d", pid], check=True, capture_output=True)
    with anyio.fail_after(DUMP_SECONDS):
        while True:
            for part in dump.parent.glob(f"{dump.name}.*"):
                if total := TOTAL.search(part.read_text()):
                    part.unlink()
                    return int(total[1]) / len(load.good)
            await asyncio.sleep(0.1)


async def compare(checkout: Path, count: int) -> None:
    """Prints, for each kind of load, the instructions per turn of both checkouts, and their
    ratio."""
    stages.START_SECONDS = START_SECONDS
    async with staged(Record()) as stage:
        stage.ours.tree.stop()
        places = {"here": Path(__file__).parents[1], "there": checkout}
        targets = [counted_gateway(stage, name, place) for name, place in places.items()]
        try:
            for target in targets:
                await stage.healthy(target)
            for name, plan in KINDS.items():
                limited = msgspec.structs.replace(
                    plan, count=count, concurrency=CONCURRENCY, seconds=TURN_SECONDS
                )
                here, there = [await counted(stage, target, limited) for target in targets]
                print(
                    f"{name}: {here / 1e6:.3f} million here, {there / 1e6:.3f} million there,"
                    f" ratio {here / there:.3f}",
                    flush=True,
                )
        finally:
            for target in targets:
                target.tree.stop()
        assert not stage.record.errors, stage.record.samples


@click.command()
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--count", default=200, show_default=True, help="Turns of each kind.")
def main(checkout: Path, count: int) -> None:
    """Compare the CPU instructions per turn of this checkout with those of another checkout."""
    options = {"use_uvloop": sys.platform != "win32"}
    anyio.run(compare, checkout.resolve(), count, backend_options=options)


if __name__ == "__main__":
    main()
