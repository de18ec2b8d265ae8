"""Deliveries on SQLite."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.state.sqlite.store import open_store
from hermes.testing.tables import DeliveriesContract
from hermes.types.store import OwnerKind, Store


class TestDeliveriesOnSQLite(DeliveriesContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_store(folder / "state.db", kind)
