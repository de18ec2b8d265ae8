"""Races between the start of an approved script and a change of the script."""

import random
from collections.abc import Callable
from pathlib import Path

import anyio

from hermes.testing.sandbox_contract import RecordedCommand
from hermes.types.errors import ToolFailed
from hermes.types.execution import Sandbox

LONGEST_DELAY = 0.05
"""During a race, the script is changed at most this number of seconds after its start was
requested."""
ScriptChange = Callable[[Path], object]


def overwrite(script: Path) -> None:
    script.write_text("echo changed\n")


def exchange(script: Path) -> None:
    """Moves another file to the path of the script."""
    other = script.with_name("other")
    overwrite(other)
    other.rename(script)


async def changed_before(
    sandbox: Sandbox, workspace: Path, change: ScriptChange, races: int
) -> int:
    """Changes an approved script before its start is requested, and repeats this `races` times.
    Returns how many times the changed script ran."""
    script, ran = workspace / "x.sh", 0
    for _ in range(races):
        script.write_text("echo approved\n")
        place = await sandbox.locate(".", ["x.sh"])
        change(script)
        try:
            run = sandbox.run("bash x.sh", RecordedCommand(), seconds=30.0, place=place)
            ran += "changed" in (await run).text
        except ToolFailed:
            continue
    return ran


async def changed_during(
    sandbox: Sandbox, workspace: Path, change: ScriptChange, races: int, seed: int = 0
) -> int:
    """Changes an approved script at a random moment of its start, and repeats this `races` times.
    Returns how many times the changed script ran."""
    chance = random.Random(seed)  # noqa: S311  # a reproducible trial
    script, ran = workspace / "x.sh", 0

    async def change_later(seconds: float) -> None:
        await anyio.sleep(seconds)
        change(script)

    for _ in range(races):
        script.write_text("echo approved\n")
        place = await sandbox.locate(".", ["x.sh"])
        async with anyio.create_task_group() as group:
            group.start_soon(change_later, chance.uniform(0, LONGEST_DELAY))
            try:
                run = sandbox.run("bash x.sh", RecordedCommand(), seconds=30.0, place=place)
                ran += "changed" in (await run).text
            except ToolFailed:
                continue
    return ran
