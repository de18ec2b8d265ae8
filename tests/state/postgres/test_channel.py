"""Statements are sent without waiting for results, and errors and lost connections are noticed."""

import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import psycopg
import pytest

from hermes.state.postgres.channel import Channel, encoded
from hermes.state.postgres.errors import ConnectionLost
from hermes.state.postgres.pool import Server
from hermes.state.postgres.sql import prepared
from hermes.testing.postgres import shared_databases
from hermes.testing.running import until


@pytest.fixture
async def channel(url: str) -> AsyncIterator[Channel]:
    opened = Channel(await Server(url).connect())
    yield opened
    await opened.close()


async def test_every_value_is_read_back_unchanged(channel: Channel) -> None:
    values = (1, -(1 << 62), 0.1, 1_700_000_000.123456, "text ü 🦊", b"\x00\xff", None, True, "")
    types = ("bigint", "bigint", *["double precision"] * 2, "text", "bytea", "text", "bigint")
    columns = ", ".join(f"cast(? as {one})" for one in (*types, "text"))
    reply = channel.send(prepared(f"select {columns}"), values)
    channel.synchronize()
    await channel.settle()
    ((*found,),) = reply.rows()
    assert found == list(values)


async def test_results_have_the_order_of_the_statements(channel: Channel) -> None:
    replies = [channel.send(prepared("select cast(? as bigint)"), (n,)) for n in range(200)]
    channel.synchronize()
    await channel.settle()
    assert [reply.rows() for reply in replies] == [[(n,)] for n in range(200)]


async def test_megabytes_pass_in_both_directions(channel: Channel) -> None:
    data = bytes(range(256)) * 40_000
    reply = channel.send(prepared("select cast(? as bytea)"), (data,))
    channel.synchronize()
    await channel.settle()
    assert reply.rows() == [(data,)]


async def test_after_an_error_the_channel_works_again(channel: Channel) -> None:
    broken, fine = prepared("select 1 / cast(? as bigint)"), prepared("select 2")
    for _ in range(2):
        channel.send(broken, (0,))
        skipped = channel.send(fine)
        channel.synchronize()
        with pytest.raises(psycopg.errors.DivisionByZero):
            await channel.settle()
        assert skipped.rows() == []
    reply = channel.send(fine)
    channel.synchronize()
    await channel.settle()
    assert reply.rows() == [(2,)]


async def test_a_statement_that_could_not_be_prepared_is_prepared_again(channel: Channel) -> None:
    statement = prepared("select a from later")
    for _ in range(2):
        channel.send(statement)
        channel.synchronize()
        with pytest.raises(psycopg.errors.UndefinedTable):
            await channel.settle()
    channel.send(prepared("create table later (a bigint)"))
    channel.synchronize()
    await channel.settle()
    reply = channel.send(statement)
    channel.send(prepared("drop table later"))
    channel.synchronize()
    await channel.settle()
    assert reply.rows() == []


async def test_a_connection_that_ends_while_nothing_is_sent_counts_as_lost(
    channel: Channel, tmp_path: Path
) -> None:
    databases = shared_databases()
    databases.server.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        f" where datname = '{databases.name_of(tmp_path)}'"
    )
    await until(lambda: channel.lost)
    with pytest.raises(ConnectionLost):
        channel.send(prepared("select 1"))


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_an_error_of_the_socket_is_noticed_although_data_came_before_it(url: str) -> None:
    connection = await Server(url).connect()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    os.dup2(ours.fileno(), connection.pgconn.socket)
    ours.close()
    channel = Channel(connection)
    channel.send(prepared("select 1"))
    channel.synchronize()
    async with anyio.create_task_group() as group:

        async def wait() -> None:
            with pytest.raises(ConnectionLost):
                await channel.settle()

        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        notice = b"SWARNING\x00C01000\x00Mfarewell\x00\x00"
        theirs.send(b"N" + (len(notice) + 4).to_bytes(4, "big") + notice)
        # The other side closes its socket before it has read the statement. So the close resets the
        # connection.
        theirs.close()
    await channel.close()


def test_only_values_that_a_database_can_store_can_be_parameters() -> None:
    with pytest.raises(TypeError, match="list"):
        encoded([[]])
