"""The store on PostgreSQL passes the contract of every store."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from hermes.state.postgres import store as postgres_store
from hermes.state.postgres.store import connected_store
from hermes.testing.contracts import StoreContract
from hermes.testing.cutting_proxy import cutting_proxy
from hermes.testing.postgres import shared_databases
from hermes.testing.rows import add, put, value
from hermes.testing.running import until
from hermes.testing.stores import open_test_store
from hermes.types.store import OwnerKind, Store


class TestPostgres(StoreContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)


@pytest.mark.parametrize("reached_again", [True, False])
async def test_a_cancelled_caller_waits_only_a_while_for_the_outcome_of_a_commit(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch, reached_again: bool
) -> None:
    monkeypatch.setattr(postgres_store, "CANCELLED_LOOKUP_SECONDS", 60 if reached_again else 0.2)
    databases = shared_databases()
    results: list[int] = []
    async with (
        cutting_proxy(databases.server.socket) as proxy,
        connected_store(proxy.url(databases.name_of(tmp_path)), direct_url=url) as store,
    ):
        await store.run(put, "counter")
        # The fifth statement is the announcement of the commit. When the proxy has passed it on,
        # the first transaction is over.
        await until(lambda: proxy.statements == 5)
        # The proxy will refuse new connections, so the next transaction must find an idle
        # connection in the pool.
        await until(lambda: store._pool._idle)
        proxy.arm(4, "after")
        proxy.refusing = True

        async def count() -> None:
            results.append(await store.run(add, "counter"))

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(count)
                await until(lambda: proxy.cuts)
                await until(lambda: store.trouble)
                group.cancel_scope.cancel()
                proxy.refusing = not reached_again
        proxy.refusing = False
        assert results == ([1] if reached_again else [])
    # A store without the proxy reads the result, because the connections of the first store may be
    # cut.
    async with connected_store(url) as other:
        assert await other.read(value, "counter") == 1
