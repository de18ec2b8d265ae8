"""Both databases fulfil the contract for long bodies."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.testing.body_contract import BodiesContract
from hermes.testing.stores import open_test_store
from hermes.types.store import OwnerKind, Store


class TestBodies(BodiesContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)
