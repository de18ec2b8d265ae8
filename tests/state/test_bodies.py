"""Long bodies on SQLite."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.store import open_store
from hermes.testing.body_contract import BodiesContract
from hermes.types.store import OwnerKind, Store


class TestBodiesOnSQLite(BodiesContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_store(folder / STORE_NAME, kind)
