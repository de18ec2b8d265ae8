"""Both databases fulfil the contract for the transcript."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from hermes.testing.conversations import TranscriptContract
from hermes.testing.stores import open_test_store
from hermes.types.store import OwnerKind, Store


class TestTranscript(TranscriptContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_test_store(folder, kind)
