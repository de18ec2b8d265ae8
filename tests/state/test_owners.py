"""Both databases fulfil the contract for owners and leases."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.testing.contracts import OwnersContract
from hermes.testing.stores import open_test_store
from hermes.types.store import OwnerKind, Store


class TestOwners(OwnersContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)
