"""Both databases fulfil the contract for the list of conversations."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.testing.conversation_lists import ConversationsContract
from hermes.testing.stores import open_test_store
from hermes.types.store import OwnerKind, Store


class TestConversations(ConversationsContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)
