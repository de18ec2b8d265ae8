"""If the store fails, a change is tried again until the store works and commits it."""

from pathlib import Path

import pytest

from hermes.control import persistence
from hermes.control.persistence import persist
from hermes.testing.rows import names, put
from hermes.testing.running import TroubledStore
from hermes.testing.stores import open_test_store
from hermes.types.errors import StoreUnavailable


async def test_a_commit_is_retried_until_the_store_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(persistence, "RETRY_SECONDS", 0.01)
    failures = 3

    async def before(name: str) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StoreUnavailable("the disk is full")

    async with open_test_store(tmp_path) as store:
        await persist(TroubledStore(store, before), put, "a")
        assert await store.read(names) == ["a"]
    assert caplog.text.count("the disk is full") == 3
