"""The stored cursor of an account: the position up to which its platform was read."""

from hermes.state import cursors
from hermes.types.identity import OwnerId
from hermes.types.store import Store


class AccountCursor:
    """The cursor of one account. It is saved only while this process holds the account's lease."""

    def __init__(
        self, store: Store, account: str, lease: tuple[OwnerId, int], value: str | None
    ) -> None:
        self._store = store
        self._account = account
        self._lease = lease
        self._value = value

    @property
    def value(self) -> str | None:
        return self._value

    async def save(self, value: str) -> None:
        if value != self._value:
            await self._store.run(cursors.save, self._account, value, self._lease)
            self._value = value
