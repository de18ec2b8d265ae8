"""`python -m benchmarks`: runs the measurements, prints a table, and fails if a limit is
exceeded."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import click

from benchmarks import crowds, databases, installation, phases, replays, stalls
from benchmarks.processes import file_system
from benchmarks.record import Record
from benchmarks.report import context, rows, save, table
from benchmarks.sizes import FULL, USUAL, Sizes
from benchmarks.stage import DISK, DidNotStart, Stage, staged

Phase = Callable[[Stage, Sizes], Awaitable[None]]
SHORT: dict[str, Phase] = {
    "start": phases.start,
    "commands": phases.commands,
    "memory": phases.memory,
    "prompt": phases.prompt,
    "latency": phases.latency,
    "tools": phases.tools,
    "growth": crowds.growth,
    "throughput": phases.throughput,
    "streams": phases.streams,
    "slow": phases.slow,
    "crowd": crowds.crowd,
}
LONG: dict[str, Phase] = {
    "stored": crowds.stored,
    "postgres": databases.postgres,
    "readers": stalls.readers,
    "replays": replays.replays,
    "slow_replays": replays.slow_replays,
    "uploads": replays.uploads,
    "install": installation.install,
}
PHASE_SECONDS = 240.0
RESULTS = Path(__file__).parent / "results"


async def measure(names: list[str], sizes: Sizes, record: Record) -> None:
    """Runs the phases on one stage, and stores their results in the record."""
    every = {**SHORT, **LONG}
    async with staged(record) as stage:
        for name in names:
            began = time.perf_counter()
            print(f"{name} …", file=sys.stderr, flush=True)
            try:
                async with asyncio.timeout(PHASE_SECONDS):
                    await every[name](stage, sizes)
            except (AssertionError, OSError, DidNotStart) as error:
                record.fail(f"{name}: {error!r}")
            record.seconds[name] = round(time.perf_counter() - began, 1)
            print(f"{name}: {record.seconds[name]} s", file=sys.stderr, flush=True)


@click.command()
@click.option("--full", is_flag=True, help="Every phase, the long ones too.")
@click.option("--only", multiple=True, type=click.Choice([*SHORT, *LONG]), help="Only this phase.")
@click.option(
    "--json", "path", type=click.Path(path_type=Path), help="Where the figures are written."
)
def main(full: bool, only: tuple[str, ...], path: Path | None) -> None:
    """Measure the gateway on this machine, and compare it with a minimal proxy."""
    names = list(only) or [*SHORT, *(LONG if full else ())]
    record, disk = Record(), file_system(DISK)
    if disk in ("tmpfs", "ramfs"):
        print(f"{DISK} is in memory: commits cost nothing there, the figures flatter us")
    anyio.run(measure, names, FULL if full else USUAL, record, backend_options={"use_uvloop": True})
    print(table(record))
    print()
    print(context(record, disk))
    save(record, disk, path or RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json")
    sys.exit(any(row.missed for row in rows(record)))


if __name__ == "__main__":
    main()
