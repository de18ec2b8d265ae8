"""Other processes can't open a database while a copy uses it."""

import psycopg
import pytest

from hermes.state.copy_record import CREATE_RECORD
from hermes.state.postgres.copy_lock import require_complete, require_no_copy, take_copy_lock
from hermes.state.postgres.pool import Server
from hermes.types.errors import StoreUnavailable
from hermes.types.store_copy import CopyRefused


async def test_only_one_copy_at_a_time_uses_a_database(url: str) -> None:
    server = Server(url)
    async with await server.connect() as one, await server.connect() as other:
        await require_no_copy(other)
        await take_copy_lock(one, "here")
        with pytest.raises(CopyRefused, match="another copy uses here"):
            await take_copy_lock(other, "here")
        with pytest.raises(StoreUnavailable, match="`hermes store copy` is using the database"):
            await require_no_copy(other)


async def test_an_interrupted_copy_can_not_be_opened_as_a_store(url: str) -> None:
    async with await Server(url).connect() as connection:
        await connection.execute(CREATE_RECORD.encode())
        await require_complete(connection)
        await connection.execute("insert into hermes_copy values (1, 'there', '{}', null)")
        for check in (require_complete, require_no_copy):
            with pytest.raises(StoreUnavailable, match="is an unfinished copy of another store"):
                await check(connection)
        await connection.execute("update hermes_copy set finished_at = 1")
        await require_no_copy(connection)


async def test_a_lost_connection_is_a_temporary_error(url: str) -> None:
    async with await Server(url).connect() as connection:
        with psycopg.connect(url, autocommit=True) as other:
            other.execute("select pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(StoreUnavailable, match="can't be used now"):
            await require_no_copy(connection)
