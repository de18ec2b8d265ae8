"""A copy between SQLite and PostgreSQL is complete and continues after a kill. The copy is refused
while another process uses one of the two stores."""

import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import ParamSpec, TypeVar

import psycopg
import pytest

from hermes.app.store_copy import copy_store, shown_url
from hermes.app.stores import home_store
from hermes.settings import Settings, load
from hermes.state.copying import StoreCopy
from hermes.state.paths import STORE_NAME, Home
from hermes.state.postgres.copy_ends import postgres_source, postgres_target
from hermes.state.postgres.store import open_postgres
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.copy_ends import sqlite_source, unfinished_copy
from hermes.state.table_shapes import TableShape
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.postgres import shared_databases
from hermes.testing.running import DRAINING, WrappedStore, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.store_copies import ODD_ROWS, assert_equal, check_copies, make_source
from hermes.testing.stores import store_reached_by, store_url, stores_on_postgres
from hermes.types.errors import ConfigError, StoreDamaged, StoreUnavailable
from hermes.types.store import OwnerKind, Store, Work
from hermes.types.store_copy import CopyRefused, CopyStep

T = TypeVar("T")
P = ParamSpec("P")


class Interrupted(Exception):
    pass


def quiet(step: CopyStep) -> None:
    pass


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    """The address of a database that has all tables and no rows."""
    with stores_on_postgres():
        yield store_url(tmp_path)


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A home with a SQLite store in which every table has rows."""
    await make_source(tmp_path / "home", 600)
    return tmp_path / "home"


def settings_of(home: Path, url: str = "") -> Settings:
    return load(home, {"HERMES_STORE_URL": url})


def test_a_copy_that_is_killed_twice_is_complete_in_both_directions(
    tmp_path: Path, url: str
) -> None:
    check_copies(tmp_path, url, messages=5000, kills=(12, 40))


async def test_a_copy_to_postgres_continues_after_any_interruption(home: Path, url: str) -> None:
    phases: list[str] = []

    def stop_at_each_new_step(step: CopyStep) -> None:
        if step.phase != "check":
            phases.append(step.phase)
            raise Interrupted

    while phases.count("compare") < 2:
        with pytest.raises(Interrupted):
            await copy_store(settings_of(home), url, stop_at_each_new_step)
    assert phases.count("copy") > 20
    result = await copy_store(settings_of(home), url, quiet)
    assert result.resumed
    assert result.tables["messages"] == 600
    assert set(result.tables.values()) == {600, ODD_ROWS}
    await assert_equal(home, url)


async def test_a_copy_to_sqlite_continues_after_any_interruption(
    home: Path, url: str, tmp_path: Path
) -> None:
    await copy_store(settings_of(home), url, quiet)
    back = tmp_path / "back"
    steps = 0

    def stop_at_each_new_copy(step: CopyStep) -> None:
        nonlocal steps
        if step.phase == "copy":
            steps += 1
            raise Interrupted

    for _ in range(10):
        with pytest.raises(Interrupted):
            await copy_store(settings_of(back, url), "sqlite", stop_at_each_new_copy)
        assert not (back / STORE_NAME).exists()
        assert unfinished_copy(back / STORE_NAME).exists()
    result = await copy_store(settings_of(back, url), "sqlite", quiet)
    assert (steps, result.resumed) == (10, True)
    assert not unfinished_copy(back / STORE_NAME).exists()
    assert (back / STORE_NAME).stat().st_mode & 0o777 == 0o600
    await assert_equal(back, url)


class ChangedTarget(WrappedStore):
    """A target of a copy in which one batch of messages changes after the copy has stored it."""

    def __init__(self, store: Store, change: Callable[[], Work[None]]) -> None:
        super().__init__(store)
        self._change = change

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        def changed() -> Work[T]:
            result = yield from transaction(*args, **kwargs)
            if any(isinstance(one, TableShape) and one.name == "messages" for one in args):
                yield from self._change()
            return result

        return await self.inner.run(changed)


def fail() -> Work[None]:
    yield "select 1", ()
    raise Interrupted


def lose_a_bit() -> Work[None]:
    yield "update messages set at = at + 0.0001 where id = 7", ()


async def copy_with(home: Path, url: str, change: Callable[[], Work[None]]) -> None:
    async with sqlite_source(Home(root=home)) as source:
        async with postgres_target(url, source.place) as target:
            target.store = ChangedTarget(target.store, change)
            await StoreCopy(source, target, quiet).run()


async def test_a_batch_and_its_record_are_stored_together_or_not_at_all(
    home: Path, url: str
) -> None:
    with pytest.raises(Interrupted):
        await copy_with(home, url, fail)
    with psycopg.connect(url) as connection:
        assert connection.execute("select count(*) from messages").fetchone() == (0,)
        recorded = connection.execute("select progress from hermes_copy").fetchone()
        assert recorded is not None
        assert "leases" in recorded[0]
        assert "messages" not in recorded[0]
    assert (await copy_store(settings_of(home), url, quiet)).resumed
    await assert_equal(home, url)


async def test_a_copy_with_a_wrong_value_is_found_and_not_used(home: Path, url: str) -> None:
    with pytest.raises(StoreDamaged, match="the table 'messages' of the copy is not equal"):
        await copy_with(home, url, lose_a_bit)
    with pytest.raises(StoreUnavailable, match="is an unfinished copy of another store"):
        async with open_postgres(url):
            pass
    result = await copy_store(settings_of(home), url, quiet)
    assert not result.resumed
    await assert_equal(home, url)


@pytest.mark.parametrize(
    "change",
    [
        "update sessions set title = 'new' where key = (select min(key) from sessions)",
        "delete from inbox where seq = 3",
        "insert into cursors (account, value) values ('!', '')",
        "delete from sessions",
    ],
)
async def test_a_source_that_changed_after_an_interrupted_copy_is_copied_again(
    home: Path, url: str, change: str
) -> None:
    def stop(step: CopyStep) -> None:
        if step.phase == "compare":
            raise Interrupted

    with pytest.raises(Interrupted):
        await copy_store(settings_of(home), url, stop)
    with closing(sqlite3.connect(home / STORE_NAME)) as database:
        database.execute(change)
        database.commit()
    assert not (await copy_store(settings_of(home), url, quiet)).resumed
    await assert_equal(home, url)


async def test_the_original_is_not_changed(home: Path, url: str) -> None:
    with closing(sqlite3.connect(home / STORE_NAME)) as database:
        before = list(database.iterdump())
    await copy_store(settings_of(home), url, quiet)
    with closing(sqlite3.connect(home / STORE_NAME)) as database:
        assert list(database.iterdump()) == before


async def test_rows_are_copied_even_if_the_databases_sort_their_keys_differently(
    home: Path, url: str
) -> None:
    accounts = [(f"{'bAzZ'[number % 4]}{number}", "") for number in range(1200)]
    with closing(sqlite3.connect(home / STORE_NAME)) as database:
        database.execute("drop table cursors")
        database.execute(
            "create table cursors (account text collate nocase primary key, value text not null)"
        )
        database.executemany("insert into cursors (account, value) values (?, ?)", accounts)
        database.commit()
    result = await copy_store(settings_of(home), url, quiet)
    assert result.tables["cursors"] == len(accounts)
    await assert_equal(home, url)


async def test_row_numbers_in_the_copy_continue_after_those_of_the_original(
    home: Path, url: str, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(home / STORE_NAME)) as database:
        database.execute("delete from compactions where id > 30")
        database.commit()
    await copy_store(settings_of(home), url, quiet)
    await copy_store(settings_of(tmp_path / "back", url), "sqlite", quiet)

    def add() -> Work[tuple[int, int]]:
        first = yield (
            "insert into compactions (session, generation, first, last, summary, turn, at)"
            " values ('s', 0, 1, 2, ?, 't', 0) returning id",
            (b"",),
        )
        second = yield (
            "insert into deliveries (id, agent, account, chat_id, state, content, placed,"
            " created_at) values ('new', 'main', 'a', 'c', 'dead', ?, ?, 0) returning seq",
            (b"", b""),
        )
        return first[0][0], second[0][0]

    for settings in (settings_of(home, url), settings_of(tmp_path / "back")):
        async with home_store(settings) as store:
            assert await store.run(add) == (ODD_ROWS + 1, ODD_ROWS + 1)


async def test_nul_in_text_of_earlier_versions_is_replaced(home: Path, url: str) -> None:
    with closing(sqlite3.connect(home / STORE_NAME)) as database:
        database.execute("update messages set text = 'a' || char(0) || 'b' where id = 1")
        database.commit()
    await copy_store(settings_of(home), url, quiet)
    with psycopg.connect(url) as connection:
        found = connection.execute("select text from messages where id = 1").fetchone()
    assert found == ("a\N{REPLACEMENT CHARACTER}b",)


async def converse(home: Path, platform: ChatServer, said: str, answer: str) -> str:
    """Sends a message to a gateway of the home, and waits for the answer. Returns the text that the
    model received."""
    model = ScriptedModel([says(answer)])
    async with running(home, [PlainAdapter(platform)], model, DRAINING):
        platform.says(said)
        await until(lambda: answer in platform.texts(), 20)
    return str(model.requests[0].messages)


async def test_a_gateway_continues_a_conversation_on_the_copy(tmp_path: Path, url: str) -> None:
    home, platform = tmp_path / "home", ChatServer()
    with store_reached_by(home, ""):
        await converse(home, platform, "My cat is called Miro.", "A fine name.")
    await copy_store(settings_of(home), url, quiet)
    with store_reached_by(home, url):
        told = await converse(home, platform, "What is it called?", "Miro.")
    assert "My cat is called Miro." in told
    shutil.move(home / STORE_NAME, tmp_path / "old.db")
    await copy_store(settings_of(home, url), "sqlite", quiet)
    with store_reached_by(home, ""):
        told = await converse(home, platform, "And my dog?", "You have not said.")
    assert "My cat is called Miro." in told
    assert "What is it called?" in told
    assert platform.texts() == ["A fine name.", "Miro.", "You have not said."]


@pytest.mark.parametrize("kind", ["gateway", "terminal"])
async def test_the_error_for_a_source_in_use_names_the_process(
    home: Path, url: str, tmp_path: Path, kind: OwnerKind
) -> None:
    expected = rf"in use by a {kind} \(pid \d+\): stop every gateway"
    async with home_store(settings_of(home), kind):
        with pytest.raises(CopyRefused, match=expected):
            await copy_store(settings_of(home), url, quiet)
    async with home_store(settings_of(tmp_path, url), kind):
        with pytest.raises(CopyRefused, match=expected):
            await copy_store(settings_of(tmp_path, url), "sqlite", quiet)
    assert not (tmp_path / STORE_NAME).exists()


async def test_nobody_opens_a_store_that_is_being_copied(home: Path, url: str) -> None:
    async with sqlite_source(Home(root=home)):
        with pytest.raises(StoreUnavailable, match="repairs, upgrades or copies"):
            async with home_store(settings_of(home)):
                pass
    async with postgres_source(url, ""):
        with pytest.raises(StoreUnavailable, match="`hermes store copy` is using the database"):
            async with open_postgres(url, "gateway"):
                pass
        with pytest.raises(CopyRefused, match="another copy uses"):
            await copy_store(settings_of(home), url, quiet)
    async with home_store(settings_of(home)), open_postgres(url):
        pass


async def test_a_complete_copy_is_not_overwritten(home: Path, url: str, tmp_path: Path) -> None:
    await copy_store(settings_of(home), url, quiet)
    with pytest.raises(CopyRefused, match=r"is a complete copy of .*, finished at .* UTC"):
        await copy_store(settings_of(home), url, quiet)
    with pytest.raises(CopyRefused, match=r"hermes.db exists already: move it"):
        await copy_store(settings_of(home, url), "sqlite", quiet)


async def test_an_unfinished_copy_of_another_store_is_refused(
    home: Path, url: str, tmp_path: Path
) -> None:
    def stop(step: CopyStep) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        await copy_store(settings_of(home), url, stop)
    await make_source(tmp_path / "other", 50)
    with pytest.raises(CopyRefused, match="is an unfinished copy of another store"):
        await copy_store(settings_of(tmp_path / "other"), url, quiet)
    for other in (home, tmp_path / "other"):
        expected = Interrupted if other == home else CopyRefused
        with pytest.raises(expected):
            await copy_store(settings_of(other), str(tmp_path / "new.db"), stop)


@pytest.fixture
async def fresh(home: Path) -> AsyncIterator[str]:
    """The address of a new database without tables."""
    server = shared_databases().server
    server.execute("drop database if exists fresh")
    server.execute("create database fresh")
    yield server.url("fresh")
    server.execute("drop database fresh")


@pytest.mark.parametrize("version", [len(MIGRATIONS) - 1, len(MIGRATIONS) + 1])
async def test_another_schema_version_is_refused(
    home: Path, url: str, tmp_path: Path, version: int
) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("update hermes_schema set version = %s", (version,))
    try:
        with pytest.raises(CopyRefused, match=rf"another version of hermes \(schema {version}"):
            await copy_store(settings_of(home), url, quiet)
    finally:
        with psycopg.connect(url) as connection:
            connection.execute("update hermes_schema set version = %s", (len(MIGRATIONS),))
    with closing(sqlite3.connect(unfinished_copy(tmp_path / "new.db"))) as database:
        database.execute(f"pragma user_version = {version}")
    with pytest.raises(CopyRefused, match=rf"another version of hermes \(schema {version}"):
        await copy_store(settings_of(home), str(tmp_path / "new.db"), quiet)


async def test_a_copy_can_be_made_into_a_database_without_tables(home: Path, fresh: str) -> None:
    await copy_store(settings_of(home), fresh, quiet)
    await assert_equal(home, fresh)


async def test_invalid_sources_and_targets_are_refused(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--to begins with 'mysql'.*postgresql://"):
        await copy_store(settings_of(home), "mysql://host/db", quiet)
    with pytest.raises(ConfigError, match="--to 'postgres' is not a place for a copy"):
        await copy_store(settings_of(home), "postgres", quiet)
    with pytest.raises(CopyRefused, match="is the source of the copy"):
        await copy_store(settings_of(home), "sqlite", quiet)
    with pytest.raises(CopyRefused, match="there is nothing to copy"):
        await copy_store(settings_of(tmp_path / "empty"), str(tmp_path / "new.db"), quiet)


async def test_the_result_says_how_to_use_the_copy(home: Path, url: str, tmp_path: Path) -> None:
    there = await copy_store(settings_of(home), url, quiet)
    assert there.advice == f"put this line into {home / '.env'}:\n  HERMES_STORE_URL={url}"
    back = tmp_path / "back"
    back.mkdir()
    (back / ".env").write_text(f"HERMES_STORE_URL={url}\nHERMES_STORE_DIRECT_URL={url}\n")
    (back / ".env").chmod(0o600)
    result = await copy_store(load(back, {}), "sqlite", quiet)
    assert result.advice.startswith(f"remove store.url, which is set in {back / '.env'}")
    assert "Remove or change store.direct_url too" in result.advice


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s%40cret@host:5/db", "postgresql://me:PASSWORD@host:5/db"),
        ("postgresql://me@/db?host=/run/pg", "postgresql://me@/db?host=/run/pg"),
        ("postgresql://h/db?user=a&password=b%20c", "postgresql://h/db?user=a&password=PASSWORD"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown
