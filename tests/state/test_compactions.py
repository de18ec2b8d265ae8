"""Both databases fulfil the contract for summaries."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.testing.conversations import CompactionsContract
from hermes.testing.stores import open_test_store
from hermes.types.store import OwnerKind, Store


class TestCompactions(CompactionsContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)
