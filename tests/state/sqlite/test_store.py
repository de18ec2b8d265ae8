"""The store on SQLite passes the contract, and several real processes can share one database."""

import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from hermes.state import owners
from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.connection import connect
from hermes.state.sqlite.snapshots import copy
from hermes.state.sqlite.store import SQLiteStore, open_store
from hermes.state.sqlite.writer import CHANGE_POLL_SECONDS
from hermes.testing.contracts import StoreContract
from hermes.testing.rows import names, put
from hermes.testing.running import until
from hermes.types.errors import StoreUnavailable, TransactionConflict
from hermes.types.identity import OwnerId
from hermes.types.store import OwnerKind, Store, Work

ANOTHER_PROCESS = """
import sys, time
from pathlib import Path
import anyio
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import put

async def main():
    async with open_store(Path(sys.argv[1]), "gateway") as store:
        print(store.owner, flush=True)
        for line in sys.stdin:
            await store.run(put, line.strip())
            print(time.time(), flush=True)

anyio.run(main)
"""
"""This program commits a row for each line that it reads, and then prints the time."""

BUSY_PROCESS = """
import sys
from pathlib import Path
import anyio
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import put

async def main():
    async with open_store(Path(sys.argv[1]), "terminal") as store:
        print(store.owner, flush=True)
        for number in range(1_000_000):
            await store.run(put, f"{number:07}")
            print(f"{number:07}", flush=True)

anyio.run(main)
"""
"""This program commits rows without end, and prints the name of each row after its commit."""

OPENING_PROCESS = """
import sys
from pathlib import Path
from hermes.state.sqlite.migration import prepare

print("ready", flush=True)
for line in sys.stdin:
    prepare(Path(line.strip())).close()
    print("done", flush=True)
"""
"""This program opens and migrates each database whose path it reads."""


class TestSQLite(StoreContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_store(folder / STORE_NAME, kind)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with open_store(tmp_path / STORE_NAME, "gateway") as store:
        yield store


@contextmanager
def process(script: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed at the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin
    process.stdin.write(line + "\n")
    process.stdin.flush()


def said_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def ask(process: subprocess.Popen[str], line: str) -> str:
    tell(process, line)
    return said_by(process)


async def test_the_error_of_a_closed_store_says_that_it_is_closed(tmp_path: Path) -> None:
    async with open_store(tmp_path / STORE_NAME) as store:
        await store.run(put, "a")
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.run(put, "b")
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.read(names)
    assert not store.path.with_name(f"{STORE_NAME}-wal").exists()


async def test_queued_transactions_are_committed_at_the_end_and_no_caller_waits_forever(
    tmp_path: Path,
) -> None:
    committed, refused = [], []

    async def one(store: SQLiteStore, number: int) -> None:
        try:
            await store.run(put, f"{number:04}")
        except StoreUnavailable:
            refused.append(number)
        else:
            committed.append(f"{number:04}")

    async def look(store: SQLiteStore) -> None:
        try:
            await store.read(names)
        except StoreUnavailable:
            refused.append(-1)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            async with open_store(tmp_path / STORE_NAME) as closing_:
                for number in range(1000):
                    group.start_soon(one, closing_, number)
                for _ in range(20):
                    group.start_soon(look, closing_)
                await anyio.lowlevel.checkpoint()
            group.start_soon(one, closing_, 9999)
    assert 9999 in refused
    assert len(committed) == 1000
    async with open_store(tmp_path / STORE_NAME) as reopened:
        assert await reopened.read(names) == sorted(committed)


def wait_for_lock(milliseconds: int) -> Work[None]:
    """Sets how long the writer's connection waits for another connection that is writing."""
    yield f"pragma busy_timeout = {milliseconds}", ()


async def test_a_transaction_runs_again_after_the_database_was_locked(store: SQLiteStore) -> None:
    await store.run(wait_for_lock, 300)
    with closing(connect(store.path)) as other:
        other.execute("begin immediate")
        async with anyio.create_task_group() as group:
            group.start_soon(store.run, put, "a")
            await until(lambda: store.trouble)
            assert "locked" in (store.trouble or "")
            other.rollback()
    assert await store.read(names) == ["a"]
    assert store.trouble is None


async def test_a_database_that_stays_locked_is_reported_and_nothing_is_stored(
    store: SQLiteStore,
) -> None:
    await store.run(wait_for_lock, 1)
    with closing(connect(store.path)) as other:
        other.execute("begin immediate")
        with pytest.raises(TransactionConflict, match="locked"):
            await store.run(put, "a")
    assert await store.read(names) == []


async def test_a_store_that_was_opened_for_reading_registers_no_process(tmp_path: Path) -> None:
    async with open_store(tmp_path / STORE_NAME) as looking:
        with pytest.raises(AssertionError, match="without a kind"):
            _ = looking.owner
        assert await looking.read(owners.others, OwnerId("")) == {}
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
async def test_a_killed_process_counts_as_dead_and_a_process_that_ended_is_not_registered(
    store: SQLiteStore,
) -> None:
    with (
        process(ANOTHER_PROCESS, store.path) as killed,
        process(ANOTHER_PROCESS, store.path) as ended,
    ):
        first, second = said_by(killed), said_by(ended)
        assert await store.dead() == []
        killed.kill()
        killed.wait()
        assert await store.dead() == [first]
        assert await store.dead("gateway") == [first]
        assert await store.dead("terminal") == []
        await anyio.to_thread.run_sync(ended.communicate, "")
        assert await store.dead() == [first]
        assert set(await store.read(owners.others, store.owner)) == {first}
        assert second


@pytest.mark.slow
async def test_a_process_that_is_killed_while_it_writes_loses_no_acknowledged_commit(
    store: SQLiteStore,
) -> None:
    for _ in range(3):
        before = await store.run(_emptied)
        assert before == []
        with process(BUSY_PROCESS, store.path) as busy:
            said_by(busy)
            acknowledged = [said_by(busy) for _ in range(20)]
            busy.kill()
            assert busy.stdout
            acknowledged += busy.stdout.read().split("\n")[:-1]
        # The killed process holds no lock any more, so this process can write. All rows whose
        # commits the killed process printed must be in the store.
        await store.run(put, "ours")
        found = await store.read(names)
        assert set(acknowledged) <= set(found)
        assert len(found) <= len(acknowledged) + 2
        await store.run(_emptied)
    assert len(await store.dead("terminal")) == 3
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


def _emptied() -> Work[list[str]]:
    """Deletes all rows. Returns the names of the rows that are left, which must be an empty
    list."""
    yield "delete from leases", ()
    return (yield from names())


@pytest.mark.slow
async def test_several_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        opening = [stack.enter_context(process(OPENING_PROCESS)) for _ in range(4)]
        assert [said_by(one) for one in opening] == ["ready"] * 4
        for attempt in range(8):
            for one in opening:
                tell(one, str(tmp_path / f"{attempt}.db"))
            assert [said_by(one) for one in opening] == ["done"] * 4


@pytest.mark.slow
async def test_only_commits_of_other_processes_are_noticed_as_changes(
    store: SQLiteStore, tmp_path: Path
) -> None:
    noticed: list[float] = []

    async def watch() -> None:
        async for _ in store.changes():
            noticed.append(time.time())

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        with process(ANOTHER_PROCESS, store.path) as other:
            said_by(other)
            await until_quiet(noticed)
            for number in range(10):
                at = float(await anyio.to_thread.run_sync(ask, other, f"theirs{number}"))
                with anyio.fail_after(5):
                    while not noticed:
                        # This process also commits all the time. Its own commits must not delay the
                        # moment at which it notices the other process's commit.
                        await store.run(put, f"{number} {time.time_ns()}")
                        await anyio.sleep(0.02)
                assert noticed.pop() - at < 0.2
                assert not noticed
        await until_quiet(noticed)
        for number in range(30):
            await store.run(put, f"ours{number}")
            await store.read(names)
            await anyio.sleep(0.01)
        await anyio.to_thread.run_sync(copy, store.path, tmp_path / "copy.db")
        await anyio.sleep(2 * CHANGE_POLL_SECONDS)
        assert noticed == []
        group.cancel_scope.cancel()


async def until_quiet(noticed: list[float]) -> None:
    """Waits until no further changes are noticed, and empties the list. The start and the end of
    the other process can count as changes, which the test must not count."""
    seen = -1
    while seen != len(noticed):
        seen = len(noticed)
        await anyio.sleep(3 * CHANGE_POLL_SECONDS)
    noticed.clear()


@pytest.mark.slow
async def test_two_processes_can_write_without_losing_a_row(store: SQLiteStore) -> None:
    with process(ANOTHER_PROCESS, store.path) as other:
        said_by(other)
        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(store.run, put, f"ours{number}")
            for number in range(50):
                await anyio.to_thread.run_sync(ask, other, f"theirs{number}")
    assert len(await store.read(names)) == 250
