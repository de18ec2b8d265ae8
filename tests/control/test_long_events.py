"""A long message is stored in several small commits."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest
from msgspec.structs import replace

from hermes.control.long_events import store_long_bodies
from hermes.state import bodies
from hermes.state.bodies import PIECE_BYTES
from hermes.state.paths import STORE_NAME
from hermes.state.sqlite.store import open_store
from hermes.testing.body_contract import LONG_BODY_TEXT, long_event
from hermes.testing.rows import said
from hermes.testing.running import DRAINING, WrappedStore, rows, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.identity import OWNER, Principal
from hermes.types.messages import Accepted, Asked, MessageEvent, Origin, Refused, UserMessage
from hermes.types.store import Store, Work

T = TypeVar("T")
P = ParamSpec("P")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / STORE_NAME) as store:
        yield store


def request(text: str, *, stateless: bool) -> MessageEvent:
    event = said("k")
    return replace(
        event,
        source=replace(event.source, platform="api"),
        origin=Origin(trigger="api", principal=Principal(name="telegram", person=OWNER)),
        body=Asked(messages=(UserMessage(text=text),), stateless=stateless, detached=True),
    )


class WeighingStore(WrappedStore):
    """Records how many bytes each transaction passes to the database."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.written: list[int] = []

    async def run(self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        def weighed() -> Work[T]:
            work, size = transaction(*args, **kwargs), 0
            try:
                sql, parameters = next(work)
                while True:
                    size += sum(len(one) for one in parameters if isinstance(one, str | bytes))
                    sql, parameters = work.send((yield sql, parameters))
            except StopIteration as end:
                self.written.append(size)
                result: T = end.value
                return result

        return await self.inner.run(weighed)


@pytest.mark.parametrize("stateless", [True, False])
async def test_no_commit_of_a_long_message_is_much_larger_than_a_piece(
    tmp_path: Path, stateless: bool
) -> None:
    stores: list[WeighingStore] = []

    def wrap(store: Store) -> Store:
        stores.append(WeighingStore(store))
        return stores[-1]

    conditions = replace(DRAINING, wrap_store=wrap)
    async with running(tmp_path, [], ScriptedModel([says("read")]), conditions) as gateway:
        receipt = await gateway.accept(request(LONG_BODY_TEXT, stateless=stateless))
        await until(lambda: not gateway.busy)
    assert isinstance(receipt, Accepted)
    written = stores[0].written
    assert sum(written) > len(LONG_BODY_TEXT)
    assert max(written) < PIECE_BYTES + 1000


async def test_the_model_gets_a_long_message_unchanged(tmp_path: Path) -> None:
    model = ScriptedModel([says("read")])
    async with running(tmp_path, [], model, DRAINING) as gateway:
        await gateway.accept(request(LONG_BODY_TEXT, stateless=True))
        await until(lambda: not gateway.busy)
    assert model.requests[0].messages[-1].text == LONG_BODY_TEXT


async def test_a_short_message_is_not_stored_before_its_intake(store: Store) -> None:
    await store_long_bodies(store, said("k"))
    assert await rows(store, "select 1 from body_pieces") == []


async def test_the_pieces_of_a_message_that_is_not_accepted_are_deleted_by_the_maintenance(
    store: Store,
) -> None:
    await store_long_bodies(store, long_event())
    assert await rows(store, "select 1 from body_pieces")
    await store.run(bodies.forget_unused)
    assert await rows(store, "select 1 from body_pieces") == []


async def test_invalid_long_text_is_refused(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        receipt = await gateway.accept(request(f"{LONG_BODY_TEXT}\ud800", stateless=False))
    assert receipt == Refused(reason="not valid text")
