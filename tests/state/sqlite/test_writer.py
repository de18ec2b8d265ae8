"""Transactions are committed in groups. Every caller gets a result or an error, even if the
writer's thread or the event loop ends."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio
import pytest

from hermes.state import transcript
from hermes.state.paths import STORE_NAME
from hermes.state.search import search
from hermes.state.sqlite.file_watch import FileWatch
from hermes.state.sqlite.files import wal_of
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.store import SQLiteStore, open_store
from hermes.state.sqlite.writer import BATCH, Job, Writer
from hermes.testing.rows import EVERYBODY, NOW, add, names, outcomes_of, put, writer
from hermes.types.errors import StoreUnavailable
from hermes.types.messages import UserMessage
from hermes.types.store import Work


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with open_store(tmp_path / STORE_NAME) as store:
        yield store


async def test_transactions_that_arrive_together_share_a_commit(store: SQLiteStore) -> None:
    """The test reads the WAL and counts the frames that end a commit. A frame has a header of 24
    bytes and a page of 4096 bytes."""
    await store.run(put, "counter")

    def commits() -> int:
        data = wal_of(store.path).read_bytes()
        return sum(data[at + 4 : at + 8] != bytes(4) for at in range(32, len(data), 24 + 4096))

    before = commits()
    await outcomes_of(store, [partial(add, "counter") for _ in range(500)])
    assert 1 <= commits() - before <= 500 // BATCH + 3
    before = commits()
    for _ in range(10):
        await store.run(add, "counter")
    assert commits() - before == 10


async def test_a_failing_transaction_of_the_same_commit_does_not_damage_the_full_text_index(
    store: SQLiteStore,
) -> None:
    def work(number: int) -> Work[None]:
        message = UserMessage(text=f"word{number} shared")
        yield from transcript.append(writer(f"t{number}"), 0, 0, message, NOW)
        if number % 2:
            raise ValueError

    for _ in range(3):
        await outcomes_of(store, [partial(work, number) for number in range(100)])
    assert len(await store.read(search, "shared", EVERYBODY, limit=999)) == 50

    def check() -> Work[None]:
        yield "insert into messages_fts (messages_fts) values ('integrity-check')", ()

    await store.run(check)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_when_the_thread_dies_no_caller_waits_forever(store: SQLiteStore) -> None:
    class Poison(Job):
        """A job that raises SystemExit in the writer's thread, which ends the thread because the
        writer does not catch this exception."""

        def fail(self, error: StoreUnavailable) -> None:
            if threading.current_thread() is not threading.main_thread():
                raise SystemExit
            super().fail(error)

        def __setattr__(self, name: str, value: object) -> None:
            if threading.current_thread() is not threading.main_thread():
                raise SystemExit
            super().__setattr__(name, value)

    def failing() -> Work[None]:
        yield "nonsense", ()

    writer = store._writer
    writer._jobs.put(Poison(failing, writer._loop.create_future()))
    with anyio.fail_after(10):
        outcomes = await outcomes_of(store, [partial(put, f"{number}") for number in range(50)])
        assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
        with pytest.raises(StoreUnavailable):
            await store.run(put, "late")


async def test_a_caller_that_is_cancelled_outside_of_anyio_leaves_no_error_on_the_loop(
    store: SQLiteStore,
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, what: errors.append(what))

    def slow() -> Work[None]:
        begun.set()
        go_on.wait(10)
        yield from put("a")

    caller = asyncio.create_task(store.run(slow))
    await anyio.to_thread.run_sync(begun.wait, 10)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go_on.set()
    assert await store.run(names) == ["a"]
    assert errors == []


async def test_a_caller_whose_scope_is_cancelled_still_gets_the_result(store: SQLiteStore) -> None:
    begun, go_on = threading.Event(), threading.Event()
    results: list[str] = []

    def slow(name: str) -> Work[str]:
        begun.set()
        go_on.wait(10)
        yield from put(name)
        return f"stored {name}"

    async def call() -> None:
        results.append(await store.run(slow, "a"))
        # The cancellation is only delayed.
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await anyio.to_thread.run_sync(begun.wait, 10)
        group.cancel_scope.cancel()
        go_on.set()
    assert results == ["stored a"]
    with anyio.CancelScope() as cancelled:
        cancelled.cancel()
        results.append(await store.run(slow, "b"))
    assert results == ["stored a", "stored b"]


async def test_a_cancelled_caller_also_gets_a_result_that_came_in_the_same_moment(
    store: SQLiteStore,
) -> None:
    job = Job(partial(put, "a"), asyncio.get_running_loop().create_future())
    job.future.cancel()
    job.error = StoreUnavailable("the disk is full")
    job.resolve()
    with anyio.fail_after(10), pytest.raises(StoreUnavailable):
        await store._writer._outcome(job)


def test_a_loop_that_is_closed_before_the_store_does_not_break_the_thread(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()

    async def started() -> Writer:
        path = tmp_path / STORE_NAME
        return Writer(path, connection, FileWatch(path), lambda: None)

    with closing(prepare(tmp_path / STORE_NAME)) as connection:
        writer = loop.run_until_complete(started())
        future = loop.create_future()
        loop.close()
        writer._jobs.put(Job(partial(put, "a"), future))
        writer._jobs.put(None)
        writer._thread.join(10)
        assert not writer._thread.is_alive()
        assert connection.execute("select name from leases").fetchall() == [("a",)]
