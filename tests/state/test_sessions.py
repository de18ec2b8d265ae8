"""Both databases fulfil the contract for sessions."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.testing.conversations import SessionsContract
from hermes.testing.stores import open_test_store
from hermes.types.store import OwnerKind, Store


class TestSessions(SessionsContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)
