"""Reads share a few connections, which can't write."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.readers import READERS
from hermes.state.sqlite.store import SQLiteStore, open_store
from hermes.testing.rows import put, value


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLiteStore]:
    async with open_store(tmp_path / STORE_NAME) as store:
        yield store


async def test_many_concurrent_readers_share_few_connections(store: SQLiteStore) -> None:
    await store.run(put, "a")
    async with anyio.create_task_group() as group:
        for _ in range(300):
            group.start_soon(store.read, value, "a")
    assert 1 <= len(store._readers) <= READERS
