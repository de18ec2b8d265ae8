"""Only one process can use a credential: a lock file and a lease in the store exclude all
others."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from hermes.control.credentials import CredentialInUse, Credentials, lease_name
from hermes.control.gateway import Gateway
from hermes.state import owners
from hermes.state.credential_locks import CredentialHolder, CredentialLock, CredentialLocks
from hermes.testing.rows import NOW, THEM
from hermes.testing.running import WrappedStore, running
from hermes.testing.scripted import ScriptedModel
from hermes.testing.stores import open_test_store
from hermes.types.errors import StoreUnavailable
from hermes.types.identity import OwnerId
from hermes.types.store import OwnerKind, Work

T = TypeVar("T")
P = ParamSpec("P")
KEY = "k" * 64


def credentials(gateway: Gateway, home: Path, folder: Path) -> Credentials:
    """Returns the object with which a process claims credentials. The process uses the gateway's
    store, and keeps its lock files in `folder`."""
    locks = CredentialLocks(home=home, folder=folder)
    return Credentials(gateway._store, gateway._recovery.lease, locks)


@asynccontextmanager
async def gateway_in(home: Path) -> AsyncIterator[Gateway]:
    async with running(home, [], ScriptedModel([])) as gateway:
        yield gateway


async def test_a_gateway_with_another_home_is_refused_and_the_refusal_names_the_holder(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "locks"
    async with gateway_in(tmp_path / "one") as one, gateway_in(tmp_path / "two") as two:
        first = credentials(one, tmp_path / "one", folder)
        second = credentials(two, tmp_path / "two", folder)
        await first.claim("chat", KEY)
        holder = rf"account chat of the gateway with the home {tmp_path / 'one'} \(pid \d+\)"
        with pytest.raises(CredentialInUse, match=f"is used by {holder}"):
            await second.claim("chat", KEY)
        await first.release("chat")
        await second.claim("chat", KEY)
        assert await second.holds("chat")
        await second.release("chat")


async def test_a_node_of_the_same_store_is_refused_and_frees_the_lock_file(
    tmp_path: Path,
) -> None:
    async with gateway_in(tmp_path) as gateway:
        store, own = gateway._store, credentials(gateway, tmp_path, tmp_path / "locks")
        refused = credentials(gateway, tmp_path, tmp_path / "l")
        async with open_test_store(tmp_path, "gateway") as node:
            await node.run(owners.claim_lease, lease_name(KEY), node.owner, set(), NOW)
            found = await store.read(owners.lease_holder, lease_name(KEY))
            assert found is not None
            holder = f"the gateway with pid {found.pid} on {found.host}"
            with pytest.raises(CredentialInUse, match=holder):
                await refused.claim("chat", KEY)
        # The refused claim has released its lock file, so another process can take it.
        other = CredentialLocks(home=tmp_path, folder=tmp_path / "l").take(KEY, "chat", THEM)
        assert isinstance(other, CredentialLock)
        other.close()
        await own.claim("chat", KEY)
        await own.release("chat")


async def test_a_lock_of_a_process_that_the_store_counts_as_dead_is_taken_as_soon_as_it_is_free(
    tmp_path: Path,
) -> None:
    dead: list[OwnerId] = []

    class Presumed(WrappedStore):
        """A store that counts the processes in `dead` as dead, although they hold their locks, as a
        paused process does."""

        async def dead(self, kind: OwnerKind | None = None) -> list[OwnerId]:
            return dead

    async with gateway_in(tmp_path) as gateway:
        locks = CredentialLocks(home=tmp_path, folder=tmp_path / "locks")
        own = Credentials(Presumed(gateway._store), gateway._recovery.lease, locks)
        paused = locks.take(KEY, "chat", THEM)
        assert isinstance(paused, CredentialLock)
        with pytest.raises(CredentialInUse):
            await own.claim("chat", KEY)
        dead.append(THEM)
        await own.claim("chat", KEY)
        assert await own.holds("chat")
        dead.clear()
        assert not await own.holds("chat"), "the process has come back"
        paused.close()
        assert await own.holds("chat")
        assert isinstance(locks.take(KEY, "chat", THEM), CredentialHolder)
        await own.release("chat")


async def test_two_accounts_of_one_gateway_can_not_have_the_same_credential(
    tmp_path: Path,
) -> None:
    async with gateway_in(tmp_path) as gateway:
        own = Credentials(gateway._store, gateway._recovery.lease, None)
        await own.claim("chat", KEY)
        with pytest.raises(CredentialInUse, match=r"chat\.b is used by account chat of this gatew"):
            await own.claim("chat.b", KEY)
        await own.claim("chat", KEY)
        assert await own.holds("chat")


async def test_a_lock_file_that_was_removed_is_noticed(tmp_path: Path) -> None:
    async with gateway_in(tmp_path) as gateway:
        own = credentials(gateway, tmp_path, tmp_path / "locks")
        await own.claim("chat", KEY)
        (tmp_path / "locks" / f"{KEY}.lock").unlink()
        assert not await own.holds("chat")
        await own.claim("chat", KEY)
        assert await own.holds("chat")
        await own.release("chat")


async def test_a_lease_that_another_node_has_taken_is_noticed(tmp_path: Path) -> None:
    async with gateway_in(tmp_path) as gateway:
        store, own = gateway._store, credentials(gateway, tmp_path, tmp_path / "locks")
        await own.claim("chat", KEY)
        await store.run(owners.claim_lease, lease_name(KEY), THEM, {store.owner}, NOW)
        assert not await own.holds("chat")
        await own.release("chat")
        taken = await store.read(owners.holds_lease, lease_name(KEY), THEM, 2)
        assert taken, "a lease that was lost is not released"


async def test_a_store_that_fails_does_not_end_the_use_of_a_credential(tmp_path: Path) -> None:
    failing: list[bool] = []

    class Failing(WrappedStore):
        async def run(
            self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs
        ) -> T:
            if failing:
                raise StoreUnavailable("the disk is full")
            return await super().run(transaction, *args, **kwargs)

        async def read(
            self, transaction: Callable[P, Work[T]], *args: P.args, **kwargs: P.kwargs
        ) -> T:
            if failing:
                raise StoreUnavailable("the disk is full")
            return await super().read(transaction, *args, **kwargs)

    async with gateway_in(tmp_path) as gateway:
        locks = CredentialLocks(home=tmp_path, folder=tmp_path / "locks")
        own = Credentials(Failing(gateway._store), gateway._recovery.lease, locks)
        await own.claim("chat", KEY)
        failing.append(True)
        assert await own.holds("chat")
        await own.release("chat")
