"""The list of conversations on SQLite."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.store import open_store
from hermes.testing.conversation_lists import ConversationsContract
from hermes.types.store import OwnerKind, Store


class TestConversationsOnSQLite(ConversationsContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_store(folder / STORE_NAME, kind)
