"""A gateway reaches PostgreSQL through pgbouncer in transaction mode."""

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import psycopg
import pytest

from hermes.state.postgres.store import open_postgres
from hermes.testing.cluster import ClusterClient, RunFrame, cluster
from hermes.testing.debian import DEBIAN_SECONDS
from hermes.testing.gateway_process import SharedStore
from hermes.testing.model import FakeModel
from hermes.testing.pgbouncer import (
    SERVER_CONNECTIONS,
    PgbouncerProcess,
    installed_pgbouncer,
    running_pgbouncer,
)
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.postgres import running_postgres, shared_databases
from hermes.testing.running import running, until
from hermes.testing.scripted import Plan
from hermes.testing.stores import store_reached_by, store_url, stored_rows, stores_on_postgres
from hermes.types.errors import Disconnected
from hermes.types.store import Work
from tests.state.postgres.test_faults import Appender, check, one_turn, stopped_and_started
from tests.testing.test_cluster import check_answers, runs_turn, talk_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * DEBIAN_SECONDS)]


@pytest.fixture
def program() -> Path:
    try:
        return installed_pgbouncer()
    except Disconnected as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def on_postgres() -> Iterator[None]:
    with stores_on_postgres():
        yield


@pytest.fixture
def pooler(program: Path) -> Iterator[PgbouncerProcess]:
    with running_pgbouncer(program, shared_databases().server) as pooler:
        yield pooler


def pooled_url(pooler: PgbouncerProcess, folder: Path) -> str:
    return pooler.url(shared_databases().name_of(folder))


def counted(number: int, failing: bool) -> Work[list[int]]:
    """A transaction with several statements. The inserts return no rows, so the driver sends the
    next statement without waiting for the results of the inserts."""
    found = []
    for step in range(3):
        yield (
            "insert into access (platform, user_id, person, role, granted_by, granted_at)"
            " values (?, ?, '', '', '', 0)",
            (f"p{number}", f"u{step}"),
        )
        rows = yield "select count(*) from access where platform = ?", (f"p{number}",)
        found.append(rows[0][0])
    if failing:
        yield "select 1 / cast(? as bigint)", (0,)
    return found


async def test_transactions_change_between_the_connections_of_the_pooler(
    tmp_path: Path, pooler: PgbouncerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    results: dict[int, list[int]] = {}
    async with open_postgres(pooled_url(pooler, tmp_path), "gateway", store_url(tmp_path)) as store:

        async def count(number: int) -> None:
            with suppress(psycopg.errors.DivisionByZero):
                results[number] = await store.run(counted, number, number % 2 == 1)

        async with anyio.create_task_group() as group:
            for number in range(30):
                group.start_soon(count, number)
        name = shared_databases().name_of(tmp_path)
        backends = stored_rows(
            tmp_path,
            "select backend_type from pg_stat_activity where application_name like 'hermes %'"
            f" and datname = '{name}'",
        )
    assert results == {number: [1, 2, 3] for number in range(0, 30, 2)}
    # Besides the connections of the pooler, the store has one direct connection to the server.
    assert len(backends) == SERVER_CONNECTIONS + 1
    assert "through a pooler" not in caplog.text


async def test_a_missing_direct_url_is_noticed(
    tmp_path: Path, pooler: PgbouncerProcess, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_postgres(pooled_url(pooler, tmp_path), "gateway"):
        assert "set store.direct_url" in caplog.text


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_the_pooler_may_be_restarted_under_load(
    tmp_path: Path, pooler: PgbouncerProcess, how: signal.Signals
) -> None:
    server = ChatServer()
    with store_reached_by(tmp_path, pooled_url(pooler, tmp_path), store_url(tmp_path)):
        async with running(tmp_path, [PlainAdapter(server)], Appender()) as gateway:
            await one_turn(server, "first")
            async with anyio.create_task_group() as group:
                for number in range(40):
                    group.start_soon(one_turn, server, f"m{number}", str(number))
                for answered in (10, 20):
                    await until(lambda: len(server.messages) > answered, within=30)  # noqa: B023
                    pooler.stop(how)
                    await until(lambda: gateway.trouble)
                    pooler.start()
                    await until(lambda: gateway.trouble is None, within=10)
    check(server, tmp_path, 41)


async def test_the_server_behind_the_pooler_may_be_restarted(tmp_path: Path, program: Path) -> None:
    with running_postgres() as postgres, running_pgbouncer(program, postgres) as pooler:
        postgres.execute("create database hermes")
        with store_reached_by(tmp_path, pooler.url("hermes"), postgres.url("hermes")):
            await stopped_and_started(tmp_path, postgres)


async def test_behind_the_pooler_gateways_are_killed_and_nothing_is_lost(
    tmp_path: Path, pooler: PgbouncerProcess
) -> None:
    store = SharedStore(url=pooled_url(pooler, tmp_path), direct_url=store_url(tmp_path))
    texts: dict[str, list[str]] = {f"talk{session}": [] for session in range(4)}
    answers: dict[str, list[RunFrame]] = {}
    plan = Plan(tokens=20, delay=0.02)
    async with FakeModel(plan) as model, cluster(tmp_path, store, model.base_url, 2) as nodes:
        over = anyio.Event()
        async with anyio.create_task_group() as group:
            for number, (name, said) in enumerate(texts.items()):
                client = ClusterClient(nodes, name, number % 2)
                group.start_soon(talk_until, over, client, said, answers)
            for node in nodes:
                await until(lambda node=node: runs_turn(tmp_path, node), within=60)  # type: ignore[misc]
                await node.kill()
                pooler.stop(signal.SIGKILL)
                pooler.start()
                await node.start()
            over.set()
        logs = [node.log for node in nodes]
    check_answers(tmp_path, texts, answers)
    assert not any("Traceback" in log for log in logs), logs
