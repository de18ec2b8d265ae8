"""The states of the chat accounts that a gateway serves."""

from typing import Literal

from hermes.types.value import Value

AccountState = Literal["connected", "connecting", "waiting", "refused", "off"]
"""connected: the platform answers. connecting: the connection is being opened, or opened again
after a failure. waiting: another process that uses the same store serves the account. refused:
another gateway uses the credential of the account. off: the platform does not accept the
credential."""


class AccountStatus(Value):
    """The state of one account."""

    account: str
    """The name of the account, such as `telegram`."""
    state: AccountState
    """The state of the account."""
    since: float
    """The time at which this state began, in seconds since 1970."""
    reason: str = ""
    """One sentence that says why the account is in this state; empty if it is connected. It
    contains no secret."""

    @property
    def down(self) -> bool:
        """Whether this process should receive the messages of the account, but can't."""
        return self.state in ("connecting", "refused", "off")
