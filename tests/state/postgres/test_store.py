"""The store on PostgreSQL passes the contract of every store."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.testing.contracts import StoreContract
from hermes.testing.stores import open_test_store
from hermes.types.store import OwnerKind, Store


class TestPostgres(StoreContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)
