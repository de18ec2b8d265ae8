"""The wrapped stores of the test kit behave as documented."""

from pathlib import Path

import anyio
import pytest

from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.store import open_store
from hermes.testing.rows import add, names, put, value
from hermes.testing.running import (
    ConflictingStore,
    TroubledStore,
    WrappedStore,
    every_store_wrapped,
    running,
)
from hermes.testing.scripted import ScriptedModel
from hermes.types.store import Work


async def test_every_transaction_of_a_conflicting_store_is_run_twice_and_committed_once(
    tmp_path: Path,
) -> None:
    seen: list[int] = []

    def count() -> Work[int]:
        number = yield from add("counter")
        seen.append(number)
        return number

    async with open_store(tmp_path / STORE_NAME) as store:
        conflicting = ConflictingStore(store)
        await conflicting.run(put, "counter")
        for number in (1, 2, 3):
            assert await conflicting.run(count) == number
        assert await store.read(value, "counter") == 3
    # Each number is there twice, because each transaction runs twice: the first attempt executes
    # its statements too, and is then rolled back.
    assert seen == [1, 1, 2, 2, 3, 3]


async def test_a_conflicting_store_passes_on_the_error_of_a_transaction(tmp_path: Path) -> None:
    def failing() -> Work[None]:
        yield from put("a")
        raise ValueError("no")

    async with open_store(tmp_path / STORE_NAME) as store:
        with pytest.raises(ValueError, match="no"):
            await ConflictingStore(store).run(failing)
        assert await store.read(names) == []


async def test_a_troubled_store_calls_a_function_before_each_transaction(
    tmp_path: Path,
) -> None:
    before: list[str] = []

    async def note(name: str) -> None:
        before.append(name)

    async with open_store(tmp_path / STORE_NAME) as store:
        await TroubledStore(store, note).run(put, "a")
    assert before == ["put"]


async def test_a_wrapped_store_passes_on_all_calls(tmp_path: Path) -> None:
    async with (
        open_store(tmp_path / STORE_NAME, "gateway") as store,
        open_store(tmp_path / STORE_NAME, "terminal") as other,
    ):
        wrapped = WrappedStore(store)
        await wrapped.run(put, "a")
        await other.run(put, "b")
        assert await wrapped.read(names) == ["a", "b"]
        assert (wrapped.owner, wrapped.trouble) == (store.owner, None)
        assert await wrapped.dead("gateway") == []
        with anyio.fail_after(5):
            await anext(wrapped.changes())


async def test_the_stores_of_all_gateways_can_be_wrapped(tmp_path: Path) -> None:
    with every_store_wrapped(ConflictingStore):
        async with running(tmp_path, [], ScriptedModel([])) as gateway:
            assert isinstance(gateway._store, ConflictingStore)
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        assert not isinstance(gateway._store, ConflictingStore)
