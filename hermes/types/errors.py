"""Everything raised on purpose, named for who acts.

HermesError
├── ConfigError            the operator: a setting is wrong or missing
├── StoreUnavailable       the disk is full, locked or failing; try again
│   ├── TransactionConflict  another transaction was in the way; nothing was committed, run it again
│   └── StoreDamaged       the file is damaged: quarantined at the next start
├── ClaimLost              another process took this work over; let go
├── IntakeClosed           the gateway is draining; come back after the restart
├── TooBusy                the backlog is at its bound; come back later
├── RateLimited            a remote side asks for a pause; retried after it
├── Disconnected           a remote side is out of reach; retried with backoff
├── Rejected               a remote side will never take this; told, not retried
│   └── TooLong            the conversation does not fit the model's window
├── AuthFailed             a credential is wrong; told, not retried
└── ToolFailed             the model: the call did not work, and why
"""


class HermesError(Exception):
    """The root: its text is fit to be shown to the person it is named for."""


class ConfigError(HermesError):
    pass


class StoreUnavailable(HermesError):
    pass


class TransactionConflict(StoreUnavailable):
    pass


class StoreDamaged(StoreUnavailable):
    pass


class ClaimLost(HermesError):
    pass


class IntakeClosed(HermesError):
    pass


class TooBusy(HermesError):
    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class RateLimited(HermesError):
    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds, as the remote side said; None when it did not."""


class Disconnected(HermesError):
    pass


class Rejected(HermesError):
    pass


class TooLong(Rejected):
    pass


class AuthFailed(HermesError):
    pass


class ToolFailed(HermesError):
    pass
