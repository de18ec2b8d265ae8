"""What every implementation of a protocol must do, as test classes to inherit from.

class TestSQLite(TablesContract):
    def opened(self, folder: Path) -> AbstractAsyncContextManager[Store]:
        return open_store(folder / "state.db")
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import anyio
import pytest

from hermes.state import inbox, owners, turns
from hermes.testing.rows import (
    NOW,
    THEM,
    US,
    add,
    names,
    outcomes_of,
    put,
    said,
    session,
    turn_row,
    value,
)
from hermes.types.identity import OwnerId
from hermes.types.protocols import Store, Work


class StoreContract:
    """One transaction after the other, whole or not at all; leases that one has at a time."""

    def opened(self, folder: Path) -> AbstractAsyncContextManager[Store]:
        """An empty store that lives in the folder."""
        raise NotImplementedError

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        async with self.opened(tmp_path) as store:
            yield store

    # --- transactions ------------------------------------------------------------------------

    async def test_a_result_reaches_its_caller(self, store: Store) -> None:
        def work() -> Work[str]:
            yield from put("a")
            return "done"

        assert await store.run(work) == "done"
        assert await store.read(value, "a") == 0

    async def test_a_transaction_that_raises_leaves_nothing(self, store: Store) -> None:
        def work() -> Work[None]:
            yield from put("a")
            yield from put("b")
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await store.run(work)
        assert await store.read(names) == []

    async def test_a_transaction_that_raises_before_its_first_statement_leaves_the_store_usable(
        self, store: Store
    ) -> None:
        def work(*, early: bool) -> Work[None]:
            if early:
                raise LookupError("early")
            yield from put("lost")

        with pytest.raises(LookupError, match="early"):
            await store.run(work, early=True)
        await store.run(put, "a")
        assert await store.read(names) == ["a"]

    async def test_a_transaction_without_statements_has_a_result(self, store: Store) -> None:
        def work() -> Work[int]:
            yield from ()
            return 7

        assert await store.run(work) == 7
        assert await store.read(work) == 7

    async def test_a_broken_statement_fails_its_caller_only(self, store: Store) -> None:
        def broken() -> Work[None]:
            yield from put("lost")
            yield "insert into no_such_table values (1)", ()

        works: list[Callable[[], Work[None]]] = [
            partial(put, "a"),
            broken,
            partial(put, "b"),
            broken,
            partial(put, "c"),
        ]
        outcomes = await outcomes_of(store, works)
        assert [isinstance(outcome, Exception) for outcome in outcomes] == [0, 1, 0, 1, 0]
        assert await store.read(names) == ["a", "b", "c"]

    async def test_one_that_fails_rolls_back_alone_while_its_neighbours_commit(
        self, store: Store
    ) -> None:
        def work(number: int) -> Work[int]:
            yield from put(f"{number:03}")
            if number % 3 == 1:
                raise ValueError(str(number))
            if number % 3 == 2:
                yield from put(f"{number:03}")  # breaks the primary key
            return number

        outcomes = await outcomes_of(store, [partial(work, number) for number in range(120)])
        for number, outcome in enumerate(outcomes):
            match number % 3:
                case 0:
                    assert outcome == number
                case 1:
                    assert isinstance(outcome, ValueError)
                    assert str(outcome) == str(number)
                case _:
                    assert isinstance(outcome, Exception)
        assert await store.read(names) == [f"{number:03}" for number in range(0, 120, 3)]
        assert store.trouble is None

    async def test_an_error_that_is_no_exception_reaches_its_caller_too(self, store: Store) -> None:
        class Unusual(BaseException):
            pass

        def work() -> Work[None]:
            yield from put("lost")
            raise Unusual

        with pytest.raises(Unusual):
            await store.run(work)
        await store.run(put, "a")
        assert await store.read(names) == ["a"]

    async def test_a_commit_whose_caller_is_cancelled_still_happens(self, store: Store) -> None:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.run(put, "a")
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(store.run, put, f"b{number:02}")
            await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        assert await store.read(names) == ["a", *(f"b{number:02}" for number in range(20))]

    async def test_of_many_at_once_none_is_lost(self, store: Store) -> None:
        await store.run(put, "counter")
        results = await outcomes_of(store, [partial(add, "counter") for _ in range(500)])
        assert set(results) == set(range(1, 501))
        assert await store.read(value, "counter") == 500

    async def test_what_was_committed_is_read_at_once(self, store: Store) -> None:
        await store.run(put, "counter")
        for number in range(1, 50):
            await store.run(add, "counter")
            assert await store.read(value, "counter") == number

    async def test_a_read_sees_one_snapshot(self, store: Store) -> None:
        def both() -> Work[None]:
            yield from add("a")
            yield from add("b")

        def look() -> Work[set[int | None]]:
            seen = set()
            for name in "ab" * 50:
                seen.add((yield from value(name)))
            return seen

        await store.run(put, "a")
        await store.run(put, "b")
        distinct = set()
        async with anyio.create_task_group() as group:
            for _ in range(200):
                group.start_soon(store.run, both)
            for _ in range(20):
                seen = await store.read(look)
                assert len(seen) == 1
                distinct |= seen
        assert await store.read(look) == {200}

    async def test_a_read_can_not_write(self, store: Store) -> None:
        with pytest.raises(Exception, match=r"(?i)read.?only"):
            await store.read(put, "a")
        assert await store.read(names) == []

    # --- owners and leases -------------------------------------------------------------------

    async def test_a_lease_is_had_by_one_and_taken_over_from_the_dead(self, store: Store) -> None:
        claim = owners.claim_lease
        assert await store.run(claim, "scheduler", US, set(), NOW) == 1
        assert await store.run(claim, "scheduler", THEM, set(), NOW) is None
        assert await store.run(claim, "another", THEM, set(), NOW) == 1
        assert await store.run(claim, "scheduler", THEM, {US}, NOW) == 2
        assert await store.run(claim, "scheduler", US, set(), NOW) is None
        assert await store.run(claim, "scheduler", THEM, set(), NOW) == 3

    async def test_of_many_who_want_a_lease_at_once_one_gets_it(self, store: Store) -> None:
        claims = [
            partial(owners.claim_lease, "scheduler", OwnerId(f"o{number}"), set(), NOW)
            for number in range(50)
        ]
        outcomes = await outcomes_of(store, claims)
        assert sum(outcome == 1 for outcome in outcomes) == 1
        assert sum(outcome is None for outcome in outcomes) == 49

    async def test_who_leaves_is_forgotten_unless_something_is_left_to_take_over(
        self, store: Store
    ) -> None:
        for owner in (US, THEM):
            await store.run(owners.register, owner, "gateway", NOW)
        await store.run(owners.claim_lease, "scheduler", THEM, set(), NOW)
        await store.run(inbox.insert, "i", said("k"), session(), None, THEM)
        await store.run(owners.leave, THEM)
        assert await store.read(owners.others, US) == {THEM: "gateway"}
        await store.run(inbox.adopt, [THEM], US)
        await store.run(owners.leave, THEM)
        assert await store.read(owners.others, US) == {}
        assert await store.run(owners.claim_lease, "scheduler", US, set(), NOW) == 1
        await store.run(turns.insert, turn_row("t"), "main", "7")
        await store.run(owners.leave, US)
        assert await store.read(owners.others, THEM) == {US: "gateway"}
