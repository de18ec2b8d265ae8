"""The contract of every store, as test classes to inherit from.

class TestSQLite(StoreContract):
    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        return open_store(folder / "store.db", kind)
"""

import os
import platform
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
from hermes.types.errors import TransactionConflict
from hermes.types.identity import AgentId, OwnerId
from hermes.types.store import OwnerKind, Store, Work


class StoreFixture:
    """Opens the store for the tests of a contract."""

    def opened(
        self, folder: Path, kind: OwnerKind | None = None
    ) -> AbstractAsyncContextManager[Store]:
        """Opens the store in the folder. The first call for a folder creates an empty store."""
        raise NotImplementedError

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        async with self.opened(tmp_path) as store:
            yield store


class StoreContract(StoreFixture):
    """Transactions are atomic and can be retried, and the store lists the living and the dead
    processes that use it."""

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

    async def test_only_the_caller_of_a_wrong_statement_gets_an_error(self, store: Store) -> None:
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

    async def test_a_failed_transaction_rolls_back_alone_while_its_neighbours_commit(
        self, store: Store
    ) -> None:
        def work(number: int) -> Work[int]:
            yield from put(f"{number:03}")
            if number % 3 == 1:
                raise ValueError(str(number))
            if number % 3 == 2:
                yield from put(f"{number:03}")  # violates the primary key
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

    async def test_an_error_that_is_not_an_exception_reaches_its_caller_too(
        self, store: Store
    ) -> None:
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

    async def test_many_transactions_at_once_are_all_committed(self, store: Store) -> None:
        await store.run(put, "counter")
        results = await outcomes_of(store, [partial(add, "counter") for _ in range(500)])
        assert set(results) == set(range(1, 501))
        assert await store.read(value, "counter") == 500

    async def test_a_committed_row_can_be_read_at_once(self, store: Store) -> None:
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

    async def test_a_transaction_that_conflicts_is_run_again_from_its_beginning(
        self, store: Store
    ) -> None:
        seen: list[tuple[str, list[str]]] = []

        def work(name: str, *, more: str) -> Work[str]:
            seen.append((name, (yield from names())))
            yield from put(name)
            yield from put(more)
            if len(seen) < 3:
                raise TransactionConflict("another transaction was in the way")
            return "done"

        assert await store.run(work, "a", more="b") == "done"
        assert seen == [("a", [])] * 3
        assert await store.read(names) == ["a", "b"]

    async def test_a_transaction_that_always_conflicts_is_given_up_and_leaves_nothing(
        self, store: Store
    ) -> None:
        attempts = []

        def work() -> Work[None]:
            attempts.append(1)
            yield from put("a")
            raise TransactionConflict("another transaction was in the way")

        with pytest.raises(TransactionConflict):
            await store.run(work)
        assert 1 < len(attempts) <= 10
        assert await store.read(names) == []

    async def test_a_transaction_that_is_retried_is_committed_also_if_its_caller_is_cancelled(
        self, store: Store
    ) -> None:
        attempts = []

        def work() -> Work[None]:
            attempts.append(1)
            yield from put("a")
            if len(attempts) == 1:
                raise TransactionConflict("another transaction was in the way")

        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.run(work)
        assert await store.read(names) == ["a"]

    async def test_a_process_is_registered_while_it_has_the_store_open(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path, "gateway") as one:
            async with self.opened(tmp_path, "terminal") as other:
                assert one.owner != other.owner
                assert await one.read(owners.others, one.owner) == {other.owner: "terminal"}
                assert await other.read(owners.others, other.owner) == {one.owner: "gateway"}
                assert await one.dead() == []
            assert await one.read(owners.others, one.owner) == {}
            assert await one.dead() == []

    async def test_a_process_that_has_ended_and_left_work_is_listed_as_dead(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path, "gateway") as one:
            async with self.opened(tmp_path, "terminal") as other:
                left = other.owner
                await other.run(inbox.insert, "i", said("k"), session(), None, left)
            assert await one.dead() == [left]
            assert await one.dead("terminal") == [left]
            assert await one.dead("gateway") == []

    async def test_a_process_may_run_turns_from_the_start(self, tmp_path: Path) -> None:
        async with self.opened(tmp_path, "gateway") as store:
            permission = store.permission()
            with anyio.fail_after(5):
                assert await anext(permission)
            with anyio.move_on_after(0.05) as quiet:
                await anext(permission)
            assert quiet.cancelled_caught

    async def test_commits_of_other_processes_are_noticed_and_own_commits_are_not(
        self, tmp_path: Path
    ) -> None:
        async with self.opened(tmp_path) as one, self.opened(tmp_path) as other:
            for number in range(20):
                await other.run(put, f"theirs{number}")
            changes = one.changes()
            with anyio.fail_after(5):
                await anext(changes)
            for number in range(5):
                await one.run(put, f"ours{number}")
            with anyio.move_on_after(0.5) as quiet:
                await anext(changes)
            assert quiet.cancelled_caught
            again = one.changes()
            with anyio.fail_after(5):
                await anext(again)  # The first item reports all commits since the store was opened.
                await other.run(put, "more")
                await anext(again)
            assert len(await one.read(names)) == 26


class OwnersContract(StoreFixture):
    """A lease has one holder, and the store removes a process that has ended and left no work."""

    async def test_a_lease_has_one_holder_and_is_taken_over_from_a_dead_holder(
        self, store: Store
    ) -> None:
        claim = owners.claim_lease
        assert await store.run(claim, "scheduler", US, set(), NOW) == 1
        assert await store.run(claim, "scheduler", THEM, set(), NOW) is None
        assert await store.run(claim, "another", THEM, set(), NOW) == 1
        assert await store.run(claim, "scheduler", THEM, {US}, NOW) == 2
        assert await store.run(claim, "scheduler", US, set(), NOW) is None
        assert await store.run(claim, "scheduler", THEM, set(), NOW) == 3

    async def test_a_lease_is_freed_only_by_its_holder_and_its_holder_is_known(
        self, store: Store
    ) -> None:
        await store.run(owners.register, US, "gateway", NOW)
        assert await store.read(owners.lease_holder, "scheduler") is None
        await store.run(owners.claim_lease, "scheduler", US, set(), NOW)
        holder = await store.read(owners.lease_holder, "scheduler")
        assert holder is not None
        assert (holder.host, holder.pid) == (platform.node(), os.getpid())
        await store.run(owners.release_lease, "scheduler", THEM, 1)
        await store.run(owners.release_lease, "scheduler", US, 2)
        assert await store.read(owners.holds_lease, "scheduler", US, 1)
        await store.run(owners.release_lease, "scheduler", US, 1)
        assert await store.read(owners.lease_holder, "scheduler") is None
        assert await store.run(owners.claim_lease, "scheduler", THEM, set(), NOW) == 2

    async def test_only_one_of_many_owners_gets_a_lease(self, store: Store) -> None:
        claims = [
            partial(owners.claim_lease, "scheduler", OwnerId(f"o{number}"), set(), NOW)
            for number in range(50)
        ]
        outcomes = await outcomes_of(store, claims)
        assert sum(outcome == 1 for outcome in outcomes) == 1
        assert sum(outcome is None for outcome in outcomes) == 49

    async def test_an_owner_that_ends_is_removed_unless_it_leaves_work(self, store: Store) -> None:
        for owner in (US, THEM):
            await store.run(owners.register, owner, "gateway", NOW)
        await store.run(owners.claim_lease, "scheduler", THEM, set(), NOW)
        await store.run(inbox.insert, "i", said("k"), session(), None, THEM)
        await store.run(owners.leave, THEM)
        assert await store.read(owners.others, US) == {THEM: "gateway"}
        await store.run(inbox.adopt, [THEM], US, [AgentId("main")])
        await store.run(owners.leave, THEM)
        assert await store.read(owners.others, US) == {}
        assert not await store.read(owners.holds_lease, "scheduler", THEM, 1)
        assert await store.run(owners.claim_lease, "scheduler", US, set(), NOW) == 2
        assert await store.read(owners.holds_lease, "scheduler", US, 2)
        await store.run(turns.insert, turn_row("t"), "main", "7")
        await store.run(owners.leave, US)
        assert await store.read(owners.others, THEM) == {US: "gateway"}
