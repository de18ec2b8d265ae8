"""Both databases fulfil the contract for the inbox."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.testing.stores import open_test_store
from hermes.testing.tables import InboxContract
from hermes.types.store import OwnerKind, Store


class TestInbox(InboxContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)
