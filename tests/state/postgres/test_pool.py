"""The pool has few connections, opens them when they are needed, and replaces lost connections."""

from pathlib import Path

import anyio
import pytest

from hermes.state.postgres.pool import Pool, Server
from hermes.testing.postgres import shared_databases
from hermes.testing.running import until
from hermes.types.errors import ConfigError, StoreUnavailable


async def test_the_pool_has_a_limit_and_serves_callers_in_order(url: str) -> None:
    pool = Pool(Server(url), 2)
    one, two = await pool.acquire(), await pool.acquire()
    served: list[int] = []

    async def wait(number: int) -> None:
        channel = await pool.acquire()
        served.append(number)
        await pool.release(channel)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(wait, number)
            await anyio.wait_all_tasks_blocked()
        assert served == []
        await pool.release(one)
    assert served == [0, 1, 2, 3, 4]
    await pool.release(two)
    again = await pool.acquire()
    assert again in (one, two)
    await pool.release(again)
    await pool.close()


async def test_a_lost_connection_is_replaced(url: str, tmp_path: Path) -> None:
    databases = shared_databases()
    pool = Pool(Server(url), 1)
    first = await pool.acquire()
    await pool.release(first)
    databases.server.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        f" where datname = '{databases.name_of(tmp_path)}'"
    )
    await until(lambda: first.lost)
    second = await pool.acquire()
    assert second is not first
    assert second.lost is None
    await pool.release(second)
    await pool.close()


async def test_a_failed_connection_attempt_frees_its_place(tmp_path: Path) -> None:
    pool = Pool(Server(f"postgresql://hermes@/hermes?host={tmp_path}"), 1)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await pool.acquire()
    await pool.close()


async def test_a_pool_waits_for_lent_connections_before_it_closes(url: str) -> None:
    pool = Pool(Server(url), 1)
    channel = await pool.acquire()
    async with anyio.create_task_group() as group:
        group.start_soon(pool.close)
        await anyio.wait_all_tasks_blocked()
        assert channel.lost is None
        await pool.release(channel)
    assert channel.lost is not None
    with pytest.raises(StoreUnavailable, match="shutting down"):
        await pool.acquire()


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql://u:secret@db:6432/hermes", "the database 'hermes' on db:6432"),
        ("postgresql://u:secret@db/hermes", "the database 'hermes' on db"),
        ("postgresql:///hermes", "the database 'hermes' on this machine"),
    ],
)
def test_the_name_of_a_database_does_not_contain_the_password(url: str, place: str) -> None:
    assert Server(url).place == place


def test_the_error_for_an_invalid_address_does_not_repeat_it() -> None:
    with pytest.raises(ConfigError, match="%40") as raised:
        assert Server("postgresql://u:pass-word-1@[").place
    assert "pass-word-1" not in str(raised.value)
