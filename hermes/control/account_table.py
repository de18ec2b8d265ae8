"""The states of the accounts that this process is configured to serve."""

import time
from collections.abc import Callable

import anyio
from msgspec.structs import replace

from hermes.types.accounts import AccountState, AccountStatus
from hermes.types.messages import MessageEvent


class AccountTable:
    """Holds the present state of every account. It is in memory only, and empty at the start."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        """`redact` removes secrets from the reasons why accounts are not connected, because
        everybody can read these reasons at `/ready`."""
        self._redact = redact
        self._found: dict[str, AccountStatus] = {}
        self._changed = anyio.Event()
        self._own_users: set[tuple[str, str]] = set()

    def recognize(self, platform: str, user_id: str) -> None:
        """Remembers the user id that one of our accounts has on its platform."""
        self._own_users.add((platform, user_id))

    def marked(self, event: MessageEvent) -> MessageEvent:
        """Returns the message. If one of our accounts has sent the message, the result is marked as
        the message of a bot."""
        source = event.source
        if (source.platform, source.user_id) not in self._own_users:
            return event
        return replace(event, source=replace(source, is_bot=True))

    def set(self, account: str, state: AccountState, reason: str = "") -> None:
        """Sets the state of the account. If the account already has this state, the time at which
        the state began does not change."""
        before = self._found.get(account)
        since = before.since if before and before.state == state else time.time()
        status = AccountStatus(
            account=account, state=state, since=since, reason=self._redact(reason)
        )
        if status != before:
            self._found[account] = status
            self._changed.set()
            self._changed = anyio.Event()

    def all(self) -> tuple[AccountStatus, ...]:
        """Returns the accounts in the order in which they were added."""
        return tuple(self._found.values())

    def down(self) -> tuple[AccountStatus, ...]:
        """Returns the accounts whose messages this process should receive, but can't."""
        return tuple(one for one in self._found.values() if one.down)

    async def changed(self) -> None:
        """Waits until the state or the reason of an account changes."""
        await self._changed.wait()
