"""Both databases fulfil the contract for turns."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.testing.stores import open_test_store
from hermes.testing.tables import TurnsContract
from hermes.types.store import OwnerKind, Store


class TestTurns(TurnsContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)
