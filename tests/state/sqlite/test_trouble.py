"""Acknowledged commits survive a full disk, a failing disk and a power cut."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from hermes.state import transcript
from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.files import suspicion
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.store import SQLiteStore, open_store
from hermes.testing.rows import NOW, names, outcomes_of, put, said_in, writer
from hermes.types.errors import StoreUnavailable
from hermes.types.messages import UserMessage
from hermes.types.store import Work

IMAGES = 240

FAILING_DISK = """
import resource, signal, sys
from pathlib import Path
import anyio
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import put
from hermes.types.errors import StoreUnavailable

async def main():
    path = Path(sys.argv[1])
    async with open_store(path) as store:
        await store.run(put, "before")
        size = path.with_name(path.name + "-wal").stat().st_size
        # A write beyond this limit fails with EFBIG. SQLite reports this failure as an I/O error,
        # not as a full disk.
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40_000, resource.RLIM_INFINITY))
        done = failed = 0
        while failed < 5:
            try:
                await store.run(put, f"{done + failed:05}")
                assert store.trouble is None
                print("+", f"{done + failed:05}")
                done += 1
            except StoreUnavailable as error:
                assert store.trouble == str(error), store.trouble
                print("-", f"{done + failed:05}", error)
                failed += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        await store.run(put, "after")
        assert store.trouble is None

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
anyio.run(main)
"""


def big(number: int) -> Work[None]:
    """Inserts a row, a message of about a page of text, and another row. They must be stored
    together or not at all."""
    yield from put(f"a{number:05}")
    message = UserMessage(text=f"{number} " * 2000)
    yield from transcript.append(writer(f"t{number}"), 0, 0, message, NOW)
    yield from put(f"b{number:05}")


def limit(pages: int) -> Work[None]:
    yield f"pragma max_page_count = {pages}", ()


async def fill(store: SQLiteStore) -> int:
    """Writes until the disk is full. Returns the number of acknowledged commits."""
    for number in range(10_000):
        try:
            await store.run(big, number)
        except StoreUnavailable as error:
            return number if "full" in str(error) and store.trouble == str(error) else -1
    raise AssertionError("the disk was never full")


async def holds_exactly(store: SQLiteStore, numbers: range) -> None:
    expected = [f"{letter}{number:05}" for letter in "ab" for number in numbers]
    assert await store.read(names) == expected


async def test_a_full_database_refuses_whole_transactions_and_recovers_by_itself(
    tmp_path: Path,
) -> None:
    async with open_store(tmp_path / STORE_NAME) as store:
        await store.run(limit, 150)
        done = await fill(store)
        assert done > 5
        works = [partial(big, number) for number in range(done, done + 20)]
        outcomes = await outcomes_of(store, works)
        # Several transactions may share the commit that fails. Each caller must get an error object
        # of its own.
        assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
        assert len({id(outcome) for outcome in outcomes}) == 20
        await holds_exactly(store, range(done))
        await store.run(limit, 1_000_000)
        await outcomes_of(store, [partial(big, number) for number in range(done, done + 20)])
        assert store.trouble is None
        await holds_exactly(store, range(done + 20))
        assert not suspicion(store.path).exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False, capture_output=True
    )
    if not made or made.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


async def test_a_full_disk_refuses_whole_transactions_and_recovers_by_itself(
    small_disk: Path,
) -> None:
    ballast = small_disk / "ballast"
    async with open_store(small_disk / STORE_NAME) as store:
        await store.run(put, "a")
        ballast.write_bytes(bytes(300_000))
        await store.run(put, "b")
        done = await fill(store)
        assert done > 3
        outcomes = await outcomes_of(
            store, [partial(big, number) for number in range(done, done + 20)]
        )
        assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
        found = await store.read(names)
        assert len(found) == 2 + 2 * done
        ballast.unlink()
        await store.run(big, done)
        assert store.trouble is None
        assert len(await store.read(names)) == 4 + 2 * done
    async with open_store(small_disk / STORE_NAME) as store:
        assert len(await store.read(names)) == 4 + 2 * done


def test_a_failing_disk_loses_no_acknowledged_commit(tmp_path: Path) -> None:
    path = tmp_path / STORE_NAME
    run = subprocess.run(
        [sys.executable, "-c", FAILING_DISK, path],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == 0, run.stderr
    lines = [line.split(" ", 2) for line in run.stdout.splitlines()]
    acknowledged = [line[1] for line in lines if line[0] == "+"]
    refused = [line[1] for line in lines if line[0] == "-"]
    assert acknowledged
    assert len(refused) == 5
    with closing(prepare(path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
        found = {row[0] for row in connection.execute("select name from leases")}
    assert found == {"before", "after", *acknowledged}


@pytest.mark.slow
async def test_a_power_cut_at_any_byte_keeps_acknowledged_commits(tmp_path: Path) -> None:
    """The test makes images of the disk. In these images, the data after the last acknowledged
    commit is missing, cut off or random."""
    chance = random.Random(7)
    path, log = tmp_path / STORE_NAME, tmp_path / f"{STORE_NAME}-wal"
    safe: list[int] = []
    async with open_store(path) as store:
        for number in range(60):
            await (store.run(big, number) if number % 4 == 0 else store.run(put, f"{number}"))
            safe.append(log.stat().st_size)
        data, logged = path.read_bytes(), log.read_bytes()
    assert safe == sorted(safe), "a checkpoint would begin the log anew"
    (tmp_path / "image").mkdir()
    image = tmp_path / "image" / STORE_NAME
    for _ in range(IMAGES):
        acknowledged = chance.randrange(len(safe))
        start = safe[acknowledged]
        cut = chance.randint(start, min(start + 20_000, len(logged)))
        tail = bytearray(logged[start:cut] if chance.random() < 0.5 else logged[start:])
        for _ in range(chance.randrange(40) if tail else 0):
            tail[chance.randrange(len(tail))] = chance.randrange(256)
        if chance.random() < 0.2:
            tail += chance.randbytes(chance.randrange(9000))
        for old in image.parent.iterdir():
            old.unlink()
        image.write_bytes(data)
        image.with_name(f"{STORE_NAME}-wal").write_bytes(logged[:start] + tail)
        with closing(prepare(image)) as connection:
            assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
            found = {row[0] for row in connection.execute("select name from leases")}
        assert found >= expected_after(acknowledged)


def expected_after(last: int) -> set[str]:
    found: set[str] = set()
    for number in range(last + 1):
        found |= {f"a{number:05}", f"b{number:05}"} if number % 4 == 0 else {f"{number}"}
    return found


async def test_damage_that_is_found_during_use_is_recorded_for_the_next_start(
    tmp_path: Path,
) -> None:
    path = tmp_path / STORE_NAME
    async with open_store(path) as store:
        for number in range(30):
            await store.run(big, number)
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        # Only the second half of the file is damaged. The first half contains the schema, which
        # every start reads.
        for at in range(size // 2 // 4096 * 4096, size, 4096):
            file.seek(at)
            file.write(b"\xff" * 100)
    async with open_store(path) as store:
        with pytest.raises(StoreUnavailable, match="damaged"):
            await store.read(said_in, str(writer("t").session), 0)
    assert suspicion(path).exists()
