"""Ensures that only one gateway uses a credential, such as the token of a bot. This holds for all
gateways of the user on this machine, and for all gateways with the same store."""

import logging
from collections.abc import Awaitable, Callable

import anyio.to_thread

from hermes.state import owners
from hermes.state.credential_locks import CredentialLock, CredentialLocks
from hermes.types.errors import ConfigError, HermesError, StoreUnavailable
from hermes.types.store import Store

log = logging.getLogger(__name__)


class CredentialInUse(ConfigError):
    """Another gateway, or another account of this gateway, uses the credential. The message names
    the gateway or account."""


class _HeldCredential:
    def __init__(self, key: str, lock: CredentialLock | None, epoch: int) -> None:
        self.name = lease_name(key)
        self.key = key
        self.lock = lock
        self.epoch = epoch


def lease_name(key: str) -> str:
    return f"credential:{key}"


class Credentials:
    """The credentials that this process uses, by account.

    A hash of the credential names its lock file and its lease. The lock file prevents the use of
    the credential in other homes of the user on this machine. The lease, in the store, prevents the
    use of the credential on other machines with the same store."""

    def __init__(
        self,
        store: Store,
        lease: Callable[[str], Awaitable[int | None]],
        locks: CredentialLocks | None,
    ) -> None:
        """`lease` takes the lease with the given name. It returns the epoch (number) of the lease,
        or None if another process has the lease. If `locks` is None, there are no lock files."""
        self._store = store
        self._lease = lease
        self._locks = locks
        self._held: dict[str, _HeldCredential] = {}

    async def claim(self, account: str, key: str) -> None:
        """Reserves the credential for this account. Raises CredentialInUse if another account or
        another gateway uses the credential."""
        await self.release(account)
        for other, held in self._held.items():
            if held.key == key:
                raise _in_use(account, f"account {other} of this gateway")
        lock = await self._lock(account, key)
        try:
            epoch = await self._take_lease(account, key)
        except BaseException:
            if lock is not None:
                lock.close()
            raise
        self._held[account] = _HeldCredential(key, lock, epoch)

    async def holds(self, account: str) -> bool:
        """Returns whether this process is still the only user of the account's credential. Also
        returns True for an account without a credential, and for every account while the store is
        unavailable."""
        held = self._held.get(account)
        if held is None:
            return True
        if held.lock is not None and held.lock.is_removed():
            return False
        try:
            held.lock = held.lock or await self._lock(account, held.key)
            return await self._store.read(
                owners.holds_lease, held.name, self._store.owner, held.epoch
            )
        except ConfigError:
            return False
        except StoreUnavailable:
            return True

    async def release(self, account: str) -> None:
        """Lets other gateways use the account's credential."""
        held = self._held.pop(account, None)
        if held is None:
            return
        if held.lock is not None:
            held.lock.close()
        try:
            await self._store.run(owners.release_lease, held.name, self._store.owner, held.epoch)
        except HermesError as error:
            log.error("the credential of %s is not free for other nodes yet: %s", account, error)

    async def _lock(self, account: str, key: str) -> CredentialLock | None:
        """Takes the lock file. Returns None if this process uses no lock files. Also returns None
        if the lock belongs to a process that the store counts as dead, for example because that
        process is paused."""
        if self._locks is None:
            return None
        found = await anyio.to_thread.run_sync(self._locks.take, key, account, self._store.owner)
        if isinstance(found, CredentialLock):
            return found
        if found is not None and found.owner in await self._store.dead():
            return None
        raise _in_use(account, str(found or "another process of this user"))

    async def _take_lease(self, account: str, key: str) -> int:
        name = lease_name(key)
        epoch = await self._lease(name)
        if epoch is None:
            found = await self._store.read(owners.lease_holder, name)
            holder = "another gateway"
            if found is not None:
                holder = f"the gateway with pid {found.pid} on {found.host}"
            raise _in_use(account, holder)
        return epoch


def _in_use(account: str, holder: str) -> CredentialInUse:
    return CredentialInUse(
        f"the credential of {account} is used by {holder}: stop one of them, or use another"
        " credential"
    )
