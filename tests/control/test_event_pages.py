"""Many readers share a page of stored events, so the page is read only once. Only a page that may
still change is read for each reader."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import anyio
import anyio.lowlevel
import pytest

from hermes.control.event_pages import CACHED_PAGES, EventPages, ReplayPage
from hermes.control.turnstile import PER_ROUND
from hermes.state import turns
from hermes.state.codec import record
from hermes.testing.running import WrappedStore
from hermes.testing.stores import open_test_store
from hermes.types.events import TextDelta
from hermes.types.identity import TurnId
from hermes.types.store import Work

T = TypeVar("T")
P = ParamSpec("P")

TURN = TurnId("t")
TEXTS = [f"{number:10}" * 1000 for number in range(CACHED_PAGES + 20)]


class CountingStore(WrappedStore):
    """A store that counts its reads. The test can make it fail."""

    reads = 0
    failing = False

    async def read(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        self.reads += 1
        if self.failing:
            raise OSError("broken")
        return await self.inner.read(transaction, *args, **kwargs)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[CountingStore]:
    async with open_test_store(tmp_path) as opened:
        await opened.run(turns.keep_events, TURN, 1, record(1, [TextDelta(text=t) for t in TEXTS]))
        yield CountingStore(opened)


async def whole(pages: EventPages) -> str:
    text, after, more = "", 0, True
    while more:
        page = await pages.read(TURN, after)
        text += "".join(event.text for _, event in page.events if isinstance(event, TextDelta))
        after, more = page.events[-1][0], page.more
    return text


async def test_readers_at_the_same_position_share_one_read(store: CountingStore) -> None:
    pages, found = EventPages(store), list[ReplayPage]()

    async def read() -> None:
        found.append(await pages.read(TURN, 0))

    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(read)
    assert store.reads == 1
    assert [page.more for page in found] == [True] * 50
    assert all(page is found[0] for page in found)


async def test_many_readers_cost_about_as_many_reads_as_one(store: CountingStore) -> None:
    pages, texts = EventPages(store), list[str]()
    assert await whole(pages) == "".join(TEXTS)
    alone = store.reads

    async def read() -> None:
        texts.append(await whole(pages))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(read)
    assert texts == ["".join(TEXTS)] * 20
    # The last page may still change, so every reader reads it from the store.
    assert store.reads <= 2 * alone + 20
    assert len(pages._pages) == CACHED_PAGES


async def test_the_last_page_is_read_each_time(store: CountingStore) -> None:
    pages = EventPages(store)
    last = len(TEXTS)
    before = await pages.read(TURN, last)
    assert (before.events, before.more) == ([], False)
    await store.run(turns.keep_events, TURN, last + 1, record(last + 1, [TextDelta(text="new")]))
    after = await pages.read(TURN, last)
    assert after.events == [(last + 1, TextDelta(text="new"))]


async def test_a_read_that_fails_is_not_cached(store: CountingStore) -> None:
    pages = EventPages(store)
    store.failing = True
    with pytest.raises(OSError, match="broken"):
        await pages.read(TURN, 0)
    store.failing = False
    assert (await pages.read(TURN, 0)).more


async def test_a_reader_lets_others_run_although_every_page_is_cached(
    store: CountingStore,
) -> None:
    pages, rounds = EventPages(store), 0
    await pages.read(TURN, 0)

    async def count() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        for _ in range(PER_ROUND * 10):
            await pages.read(TURN, 0)
        assert rounds >= 9
        group.cancel_scope.cancel()
