"""`python -m hermes.testing.crash_images`: tests a store after power cuts at random moments.

SQLite's writes are recorded. An image is a possible content of the disk after a power cut. An image
contains everything that was synced. It may also contain any of the other writes, applied in any
order, and even half of a write.
"""

import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

import anyio
import click

from hermes.state import bodies
from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.store import open_store
from hermes.testing.recording_vfs import DiskOperation, recorded_disk
from hermes.testing.rows import put
from hermes.types.store import Work
from hermes.types.value import Value

SECTOR = 512
"""Number of bytes that a disk writes completely or not at all."""
DATABASE_FILES = (STORE_NAME, f"{STORE_NAME}-wal")


class Recording(Value):
    """The disk operations of a store, and the moment at which each transaction was acknowledged."""

    operations: list[DiskOperation]
    acknowledged: list[tuple[int, int]]
    """Pairs: the number of a transaction, and how many operations came before its
    acknowledgement."""


def pair(number: int, size: int) -> Work[None]:
    """Writes a row, a body and another row in one transaction. After a power cut, the store must
    contain all three or none of them."""
    yield from put(f"a{number:05}")
    yield from bodies.add_piece(f"b{number:05}", 0, bytes([number % 256]) * size)
    yield from put(f"c{number:05}")


async def record(folder: Path, transactions: int, seed: int) -> Recording:
    """Runs transactions of all sizes, several at a time, on a new store."""
    chance = random.Random(seed)  # noqa: S311  # must be repeatable
    acknowledged: list[tuple[int, int]] = []
    with recorded_disk() as operations:
        async with open_store(folder / STORE_NAME) as store:

            async def commit(number: int, size: int) -> None:
                await store.run(partial(pair, number, size))
                acknowledged.append((number, len(operations)))

            numbers = iter(range(transactions))
            while batch := list(islice(numbers, chance.randint(1, 4))):
                async with anyio.create_task_group() as group:
                    for number in batch:
                        group.start_soon(commit, number, chance.choice((10, 5_000, 300_000)))
            # The recording ends before the store is closed, because closing it removes the WAL.
            done = list(operations)
    return Recording(operations=done, acknowledged=acknowledged)


def image(
    operations: Sequence[DiskOperation], chance: random.Random, share: float
) -> dict[str, bytes]:
    """Returns the files after a power cut. Each change that was not synced survives with the
    probability `share`."""
    found = {}
    for name in DATABASE_FILES:
        own = [one for one in operations if one.file == name]
        synced = max((n for n, one in enumerate(own, 1) if one.kind == "sync"), default=0)
        data = bytearray()
        for one in own[:synced]:
            _apply(data, one)
        late = [one for one in own[synced:] if chance.random() < share]
        if all(one.kind == "write" for one in late) and chance.random() < 0.5:
            chance.shuffle(late)
        for one in late:
            _apply(data, _torn(one, chance) if chance.random() < 0.2 else one)
        found[name] = bytes(data)
    return found


def _apply(data: bytearray, one: DiskOperation) -> None:
    match one.kind:
        case "write":
            if len(data) < one.at:
                data.extend(bytes(one.at - len(data)))
            data[one.at : one.at + len(one.data)] = one.data
        case "truncate":
            del data[one.at :]
        case "sync":
            pass


def _torn(one: DiskOperation, chance: random.Random) -> DiskOperation:
    """Returns only a part of a write, as if the power was cut during the write: the sectors before
    a random boundary, or the sectors after the boundary."""
    if one.kind != "write" or len(one.data) <= SECTOR:
        return one
    boundary = SECTOR - one.at % SECTOR + SECTOR * chance.randrange(len(one.data) // SECTOR)
    if chance.random() < 0.5:
        return DiskOperation(kind="write", file=one.file, at=one.at, data=one.data[:boundary])
    rest = one.data[boundary:]
    return DiskOperation(kind="write", file=one.file, at=one.at + boundary, data=rest)


def problems_of(folder: Path, files: dict[str, bytes], acknowledged: set[int]) -> list[str]:
    """Opens a store on `files`, the files of a disk image. Returns the problems: damage that SQLite
    reports, lost transactions, and transactions that were stored only in part."""
    for old in folder.iterdir():
        old.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with closing(prepare(folder / STORE_NAME)) as connection:
        checked = connection.execute("pragma integrity_check").fetchall()
        rows = {row[0] for row in connection.execute("select name from leases")}
        rows |= {row[0] for row in connection.execute("select body from body_pieces")}
    found = {int(row[1:]) for row in rows}
    problems = [] if checked == [("ok",)] else [f"integrity_check: {checked[:3]}"]
    if lost := acknowledged - found:
        problems.append(f"acknowledged and lost: {sorted(lost)}")
    half = [number for number in found if len({f"{c}{number:05}" for c in "abc"} & rows) != 3]
    return [*problems, f"stored in part: {sorted(half)}"] if half else problems


async def try_images(folder: Path, images: int, seed: int) -> tuple[int, list[str]]:
    """Records the writes of a store. Then builds `images` random images of the disk from these
    writes, and opens a store on each image. Returns the number of recorded operations, and the
    problems that were found."""
    chance = random.Random(seed)  # noqa: S311  # must be repeatable
    (folder / "recorded").mkdir()
    (folder / "image").mkdir()
    recording = await record(folder / "recorded", max(60, images // 4), seed)
    first = recording.acknowledged[0][1]
    problems: list[str] = []
    for number in range(images):
        cut = chance.randint(first, len(recording.operations))
        share = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        files = image(recording.operations[:cut], chance, share)
        safe = {one for one, at in recording.acknowledged if at <= cut}
        found = problems_of(folder / "image", files, safe)
        problems += [f"image {number} (seed {seed}): {problem}" for problem in found]
    return len(recording.operations), problems


@click.command(help=__doc__)
@click.option("--images", default=1000, help="How many power cuts.")
@click.option("--seed", default=1)
def main(images: int, seed: int) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        operations, problems = anyio.run(try_images, Path(folder), images, seed)
    for problem in problems:
        click.echo(problem)
    click.echo(f"{images} images of {operations} operations: {len(problems)} problems")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
