"""After a connection was cut, the outcome of its transaction can be looked up."""

import signal
import time
from collections.abc import AsyncIterator

import pytest

from hermes.state.postgres import transactions
from hermes.state.postgres.channel import Channel
from hermes.state.postgres.pool import Pool, Server
from hermes.state.postgres.transactions import CommitDoubtful, outcome_of
from hermes.testing.cutting_proxy import Moment, cutting_proxy
from hermes.testing.postgres import running_postgres, shared_databases
from hermes.testing.rows import add, names, put, value
from hermes.types.store import Work


@pytest.fixture
async def channel(url: str) -> AsyncIterator[Channel]:
    opened = Channel(await Server(url).connect())
    yield opened
    await opened.close()


async def test_only_a_transaction_that_writes_has_a_number(channel: Channel) -> None:
    _, number = await transactions.commit(channel, lambda: put("a"))
    assert number is not None
    assert await transactions.commit(channel, lambda: value("a")) == (0, None)
    assert await outcome_of(channel, number, time.time()) == "committed"


async def test_a_transaction_fails_if_a_statement_without_rows_fails(
    channel: Channel,
) -> None:
    def work() -> Work[str]:
        yield from put("a")
        yield from put("a")
        return "never"

    with pytest.raises(Exception, match="duplicate key"):
        await transactions.commit(channel, work)
    assert await transactions.read(channel, names) == []


async def test_a_rolled_back_transaction_is_known_as_aborted(channel: Channel, url: str) -> None:
    def work() -> Work[None]:
        yield from put("a")
        ((number,),) = yield "select cast(cast(pg_current_xact_id() as text) as bigint)", ()
        raise ValueError(number)

    with pytest.raises(ValueError, match=r"\d+") as raised:
        await transactions.commit(channel, work)
    assert await outcome_of(channel, int(str(raised.value)), time.time()) == "aborted"


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_commit_without_an_answer_can_be_looked_up(
    channel: Channel, url: str, moment: Moment
) -> None:
    databases = shared_databases()
    async with cutting_proxy(databases.server.socket) as proxy:
        database = url.split("?", maxsplit=1)[0].rpartition("/")[2]
        cut = Channel(await Server(proxy.url(database)).connect())
        await transactions.commit(cut, lambda: put("counter"))
        before = proxy.statements
        await transactions.commit(cut, lambda: add("counter"))
        # The transaction has as many statements as the previous transaction, and its last statement
        # is the commit. The proxy cuts the connection before or after the server runs the commit.
        proxy.arm(proxy.statements - before, moment)
        with pytest.raises(CommitDoubtful) as raised:
            await transactions.commit(cut, lambda: add("counter"))
        await cut.close()
    assert raised.value.result == 2
    outcome: str | None = "in progress"
    while outcome == "in progress":
        outcome = await outcome_of(channel, raised.value.number, raised.value.at)
    assert outcome == ("committed" if moment == "after" else "aborted")
    found = await transactions.read(channel, lambda: value("counter"))
    assert found == (2 if moment == "after" else 1)


async def test_a_transaction_that_the_server_lost_in_a_crash_counts_as_not_committed() -> None:
    with running_postgres() as postgres:
        async with await Server(postgres.url()).connect() as connection:
            # The transaction gets a number. It is rolled back, so nothing about it is written to
            # disk before the crash.
            async with connection.transaction(force_rollback=True):
                found = await connection.execute("select pg_current_xact_id()::text")
                row = await found.fetchone()
        assert row is not None
        lost = int(row[0])
        before = time.time()
        postgres.stop(signal.SIGQUIT)
        postgres.start()
        pool = Pool(Server(postgres.url()))
        channel = await pool.acquire()
        assert await outcome_of(channel, lost, before) == "aborted"
        while int(postgres.execute("select pg_current_xact_id()::text")[0][0]) < lost:
            pass
        assert await outcome_of(channel, lost, before) == "aborted"
        assert await outcome_of(channel, lost, time.time()) == "committed"
        await pool.release(channel)
        await pool.close()
