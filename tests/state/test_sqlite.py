"""The store on SQLite: the contract, and what only SQLite has."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from hermes.state import sqlite, transcript, turns
from hermes.state.schema import MIGRATIONS
from hermes.state.search import search
from hermes.state.sqlite import BATCH, SQLiteStore, connect, copy, open_store, prepare, statements
from hermes.testing.conversations import ConversationsContract
from hermes.testing.rows import (
    EVERYBODY,
    NOW,
    add,
    names,
    outcomes_of,
    put,
    scribe,
    value,
)
from hermes.testing.tables import TablesContract
from hermes.types.errors import StoreUnavailable
from hermes.types.identity import CallId, TurnId
from hermes.types.messages import UserMessage
from hermes.types.protocols import Store, Work

ANOTHER_PROCESS = """
import sys, time
from pathlib import Path
import anyio
from hermes.state.sqlite import open_store
from hermes.testing.rows import put

async def main():
    async with open_store(Path(sys.argv[1])) as store:
        print("open", flush=True)
        for line in sys.stdin:
            await store.run(put(line.strip()))
            print(time.time(), flush=True)

anyio.run(main)
"""


class TestSQLite(TablesContract, ConversationsContract):
    def opened(self, folder: Path) -> AbstractAsyncContextManager[Store]:
        return open_store(folder / "state.db")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with open_store(tmp_path / "state.db") as store:
        yield store


@contextmanager
def another_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process with the store open; each line it is told is committed, and answered with when."""
    with subprocess.Popen(
        [sys.executable, "-c", ANOTHER_PROCESS, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert said_by(process) == "open"
        try:
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str], name: str) -> float:
    assert process.stdin
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return float(said_by(process))


def said_by(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- the writer ------------------------------------------------------------------------------


async def test_transactions_that_come_together_share_a_commit(store: SQLiteStore) -> None:
    """Counted by SQLite itself: the log's frames that end a commit, of 24 + 4096 bytes each."""
    await store.run(put, "counter")

    def commits() -> int:
        data = store.path.with_name("state.db-wal").read_bytes()
        return sum(data[at + 4 : at + 8] != bytes(4) for at in range(32, len(data), 24 + 4096))

    before = commits()
    await outcomes_of(store, [partial(add, "counter") for _ in range(500)])
    assert 1 <= commits() - before <= 500 // BATCH + 3
    before = commits()
    for _ in range(10):
        await store.run(add, "counter")
    assert commits() - before == 10


async def test_a_failing_neighbour_leaves_the_index_of_words_sound(store: SQLiteStore) -> None:
    def work(number: int) -> Work[None]:
        message = UserMessage(text=f"word{number} shared")
        yield from transcript.append(scribe(f"t{number}"), 0, 0, message, NOW)
        if number % 2:
            raise ValueError

    for _ in range(3):
        await outcomes_of(store, [partial(work, number) for number in range(100)])
    assert len(await store.read(search, "shared", EVERYBODY, limit=999)) == 50

    def check() -> Work[None]:
        yield "insert into messages_fts (messages_fts) values ('integrity-check')", ()

    await store.run(check)


async def test_many_readers_at_once_share_few_connections(store: SQLiteStore) -> None:
    await store.run(put, "a")
    async with anyio.create_task_group() as group:
        for _ in range(300):
            group.start_soon(store.read, value, "a")
    assert 1 <= len(store._readers) <= sqlite.READERS


async def test_who_comes_after_the_end_is_told_so(tmp_path: Path) -> None:
    async with open_store(tmp_path / "state.db") as store:
        await store.run(put, "a")
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.run(put, "b")
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.read(names)
    assert not store.path.with_name("state.db-wal").exists()


async def test_what_is_queued_at_the_end_is_committed_and_nobody_waits_forever(
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
            async with open_store(tmp_path / "state.db") as closing_:
                for number in range(1000):
                    group.start_soon(one, closing_, number)
                for _ in range(20):
                    group.start_soon(look, closing_)
                await anyio.lowlevel.checkpoint()
            group.start_soon(one, closing_, 9999)
    assert 9999 in refused
    assert len(committed) == 1000
    async with open_store(tmp_path / "state.db") as reopened:
        assert await reopened.read(names) == sorted(committed)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_when_the_writer_dies_nobody_waits_forever(store: SQLiteStore) -> None:
    class Poison(sqlite._Job):
        """Ends the writer's thread where nothing can be caught any more."""

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

    store._jobs.put(Poison(failing, store._loop.create_future()))
    with anyio.fail_after(10):
        outcomes = await outcomes_of(store, [partial(put, f"{number}") for number in range(50)])
        assert all(isinstance(outcome, StoreUnavailable) for outcome in outcomes)
        with pytest.raises(StoreUnavailable):
            await store.run(put, "late")


# --- the file --------------------------------------------------------------------------------


async def test_the_log_is_written_through_at_each_commit(store: SQLiteStore) -> None:
    def pragma(name: str) -> Work[object]:
        rows = yield f"pragma {name}", ()
        return rows[0][0]

    assert await store.run(pragma, "journal_mode") == "wal"
    assert await store.run(pragma, "synchronous") == 2
    assert await store.read(pragma, "query_only") == 1


async def test_only_the_owner_can_read_the_file_its_log_and_its_copies(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        async with open_store(tmp_path / "deep" / "state.db") as store:
            await store.run(put, "a")
            await anyio.to_thread.run_sync(copy, store.path, tmp_path / "copy.db")
            files = [tmp_path / "copy.db", *store.path.parent.iterdir()]
            assert {path.name: mode(path) for path in files} == {
                "copy.db": 0o600,
                "state.db": 0o600,
                "state.db-wal": 0o600,
                "state.db-shm": 0o600,
            }
    finally:
        os.umask(before)


async def test_a_file_that_all_could_read_is_made_private(tmp_path: Path) -> None:
    (tmp_path / "state.db").touch(0o644)
    async with open_store(tmp_path / "state.db") as store:
        assert mode(store.path) == 0o600


def test_migrations_are_numbered_and_run_once(tmp_path: Path) -> None:
    assert [name[:5] for name, _ in MIGRATIONS] == [
        f"m{number:03}_" for number in range(1, len(MIGRATIONS) + 1)
    ]
    with closing(prepare(tmp_path / "state.db")) as connection:
        tables = connection.execute("select name, sql from sqlite_master").fetchall()
        version = connection.execute("pragma user_version").fetchone()[0]
    assert version == len(MIGRATIONS)
    with closing(prepare(tmp_path / "state.db")) as connection:
        assert connection.execute("select name, sql from sqlite_master").fetchall() == tables


async def test_started_commands_of_an_earlier_version_get_handles(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with closing(connect(path)) as connection:
        for _, script in MIGRATIONS[:2]:
            connection.executescript(script)
        connection.execute("pragma user_version = 2")
        connection.execute(
            "insert into calls (id, turn, process, started_at) values"
            " ('t_0_0', 't', ?, 1.0), ('t_0_1', 't', null, 1.0)",
            (b'{"group":12,"started":34}',),
        )
    async with open_store(path) as store:
        assert await store.read(turns.started_calls, TurnId("t")) == {
            CallId("t_0_0"): "local::12:34:t_0_0",
            CallId("t_0_1"): None,
        }


def test_every_statement_of_a_script_is_found() -> None:
    assert statements("create table a (b);\ncreate trigger c after insert on a begin\n"
                      " delete from a;\nend;\n") == [
        "create table a (b);",
        "create trigger c after insert on a begin\n delete from a;\nend;",
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="without an end"):
        statements("create table a (b)")


async def test_several_processes_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    for attempt in range(5):
        path = tmp_path / f"{attempt}.db"
        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(anyio.to_thread.run_sync, lambda at: prepare(at).close(), path)


async def test_a_newer_schema_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    prepare(path).close()
    with closing(connect(path)) as connection:
        connection.execute("pragma user_version = 99")
    with pytest.raises(StoreUnavailable, match=r"schema 99.*install that version.*backup"):
        async with open_store(path):
            pass
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("pragma user_version").fetchone()[0] == 99


async def test_a_file_that_can_not_be_opened_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "state.db").mkdir()
    with pytest.raises(StoreUnavailable, match="can't be used"):
        async with open_store(tmp_path / "state.db"):
            pass


# --- other processes -------------------------------------------------------------------------


@pytest.mark.slow
async def test_a_commit_of_another_process_is_noticed_soon_and_our_own_never(
    store: SQLiteStore, tmp_path: Path
) -> None:
    noticed: list[float] = []
    with another_process(store.path) as process:
        await until_quiet(store, noticed)
        for number in range(10):
            at = await anyio.to_thread.run_sync(tell, process, f"theirs{number}")
            with anyio.fail_after(5):
                while not noticed:
                    # Our own commits must not put the look off.
                    await store.run(put, f"{number} {time.time_ns()}")
                    await anyio.sleep(0.02)
            assert noticed.pop() - at < 0.2
            assert not noticed
    await until_quiet(store, noticed)
    for number in range(30):
        await store.run(put, f"ours{number}")
        await store.read(names)
        await anyio.sleep(0.01)
    await anyio.to_thread.run_sync(copy, store.path, tmp_path / "copy.db")
    await anyio.sleep(2 * sqlite.POLL_SECONDS)
    assert noticed == []


async def until_quiet(store: SQLiteStore, noticed: list[float]) -> None:
    """The other's start and end may show as changes."""
    store.on_foreign_change = lambda: noticed.append(time.time())
    seen = -1
    while seen != len(noticed):
        seen = len(noticed)
        await anyio.sleep(3 * sqlite.POLL_SECONDS)
    noticed.clear()


@pytest.mark.slow
async def test_two_processes_write_without_losing_anything(store: SQLiteStore) -> None:
    with another_process(store.path) as process:
        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(store.run, put, f"ours{number}")
            for number in range(50):
                await anyio.to_thread.run_sync(tell, process, f"theirs{number}")
    assert len(await store.read(names)) == 250


# --- backups ---------------------------------------------------------------------------------


async def test_a_backup_taken_while_others_write_is_whole_and_can_be_opened(
    store: SQLiteStore, tmp_path: Path
) -> None:
    def pair(number: int) -> Work[None]:
        yield from put(f"a{number}")
        message = UserMessage(text=f"{number} " + "filler " * 200)
        yield from transcript.append(scribe(f"t{number}"), 0, 0, message, NOW)
        yield from put(f"b{number}")

    async def write() -> None:
        for number in range(100_000):
            await store.run(pair, number)
            await anyio.lowlevel.checkpoint()

    await outcomes_of(store, [partial(pair, -number) for number in range(1, 1500)])
    counts = []
    async with anyio.create_task_group() as group:
        group.start_soon(write)
        for number in range(3):
            target = tmp_path / f"copy{number}.db"
            await anyio.to_thread.run_sync(copy, store.path, target)
            with closing(sqlite3.connect(target)) as copied:
                assert copied.execute("pragma integrity_check").fetchall() == [("ok",)]
            async with open_store(target) as restored:
                found = await restored.read(names)
                words = await restored.read(search, "filler", EVERYBODY, limit=99999)
            assert {name[1:] for name in found if name[0] == "a"} == {
                name[1:] for name in found if name[0] == "b"
            }
            assert len(found) == 2 * len(words)
            counts.append(len(found))
        group.cancel_scope.cancel()
    assert counts == sorted(counts)
    assert counts[0] >= 2998
    assert not list(tmp_path.glob("*.part*"))
