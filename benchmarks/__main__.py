"""`python -m benchmarks`: runs the measurements, prints a table, and fails if a limit is
exceeded."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import click
import msgspec

from benchmarks import (
    approvals,
    chats,
    crowds,
    danger,
    databases,
    fuzz,
    hostile,
    installation,
    lasting_readers,
    phases,
    replays,
    sandboxes,
    scale,
    session_keys,
    soak,
    stalls,
    timing,
)
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
    "scale": scale.scale,
    "readers": stalls.readers,
    "replays": replays.replays,
    "slow_replays": replays.slow_replays,
    "slow_answers": replays.slow_answers,
    "uploads": replays.uploads,
    "hostile": hostile.hostile,
    "timing": timing.timing,
    "session_keys": session_keys.session_keys,
    "danger": danger.danger,
    "install": installation.install,
    "limits": sandboxes.limits,
}


def _alone(measured: Callable[[Record, Sizes], Awaitable[None]]) -> Phase:
    """Makes a phase from a function. The function does not use the processes that other phases
    share."""
    return lambda stage, sizes: measured(stage.record, sizes)


SHORT["sandbox"] = _alone(sandboxes.sandbox)
LONG["races"] = _alone(sandboxes.races)
LONG["approvals"] = _alone(approvals.approvals)
LONG["approved_scripts"] = _alone(approvals.approved_scripts)
LONG["killed_approvals"] = approvals.killed_approvals
CHATS: dict[str, Phase] = {
    "waiting": _alone(chats.waiting),
    "repeats": _alone(chats.repeats),
    "outage": _alone(chats.outage),
    "ordered": _alone(chats.ordered),
    "burst": _alone(chats.burst),
}
"""Phases with a fake of Telegram's Bot API. A full run ends with these phases. Each of them can
take up to an hour."""
APART: dict[str, Phase] = {
    "lasting_readers": lasting_readers.lasting_readers,
    "fuzz": fuzz.fuzz,
    "session_names": fuzz.sessions,
    "soak": soak.soak,
}
"""Phases that run only if the command line names them."""
PHASE_SECONDS = 240.0
APART_SECONDS, CHATS_SECONDS = 900.0, 3600.0
"""Time limits in seconds: the first for each phase in `APART`, the second for each phase in
`CHATS`. The length of the soak is added to the first limit."""
RESULTS = Path(__file__).parent / "results"


async def measure(names: list[str], sizes: Sizes, record: Record) -> None:
    """Runs the phases with these names on one stage (the processes of a run), and stores their
    results in the record."""
    every = {**SHORT, **LONG, **CHATS, **APART}
    limits = dict.fromkeys(APART, APART_SECONDS + sizes.soak_minutes * 60)
    limits |= dict.fromkeys(CHATS, CHATS_SECONDS)
    async with staged(record) as stage:
        for name in names:
            began = time.perf_counter()
            print(f"{name} …", file=sys.stderr, flush=True)
            try:
                async with asyncio.timeout(limits.get(name, PHASE_SECONDS)):
                    await every[name](stage, sizes)
            except (AssertionError, OSError, DidNotStart) as error:
                record.fail(f"{name}: {error!r}")
            record.seconds[name] = round(time.perf_counter() - began, 1)
            print(f"{name}: {record.seconds[name]} s", file=sys.stderr, flush=True)


@click.command()
@click.option("--full", is_flag=True, help="Every phase, the long ones too.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice([*SHORT, *LONG, *CHATS, *APART]),
    help="Only this phase.",
)
@click.option("--minutes", default=USUAL.soak_minutes, help="Length of the soak.")
@click.option(
    "--json", "path", type=click.Path(path_type=Path), help="Where the figures are written."
)
def main(full: bool, only: tuple[str, ...], minutes: float, path: Path | None) -> None:
    """Measure the gateway on this machine, and compare it with a minimal proxy."""
    names = list(only) or [*SHORT, *([*LONG, *CHATS] if full else ())]
    record, disk = Record(), file_system(DISK)
    if disk in ("tmpfs", "ramfs"):
        print(f"{DISK} is in memory: commits cost nothing there, so the figures look too good")
    sizes = msgspec.structs.replace(FULL if full else USUAL, soak_minutes=minutes)
    anyio.run(measure, names, sizes, record, backend_options={"use_uvloop": True})
    for note in record.notes:
        print(f"{note}\n")
    print(table(record))
    print()
    print(context(record, disk))
    save(record, disk, path or RESULTS / f"{time.strftime('%Y%m%d-%H%M%S')}.json")
    sys.exit(any(row.missed for row in rows(record)))


if __name__ == "__main__":
    main()
