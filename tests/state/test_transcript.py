"""The transcript on SQLite."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.store import open_store
from hermes.testing.conversations import TranscriptContract
from hermes.types.store import OwnerKind, Store


class TestTranscriptOnSQLite(TranscriptContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_store(folder / STORE_NAME, kind)
