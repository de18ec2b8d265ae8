"""The errors that are raised on purpose. The last column says who deals with an error, and then why
or how.

Errors marked with * are possibly temporary: the same request may succeed later.

HermesError             code                     status
├── ConfigError         config_error             503*    the operator: a setting is wrong
├── StoreUnavailable    store_unavailable        503*    the caller: repeat later
│   ├── TransactionConflict transaction_conflict 503*    the store: it runs the transaction again
│   └── StoreDamaged    store_unavailable        503*    the operator: the file is damaged
├── ClaimLost           claim_lost               409     nobody: another process took the work over
├── IntakeClosed        gateway_draining         503*    the client: come back after the restart
├── TooBusy             rate_limit_exceeded      429*    the client: come back later
├── RateLimited         rate_limited             429*    the caller: repeat after the given pause
├── Disconnected        disconnected             502*    the caller: repeat with growing pauses
├── Rejected            rejected                 400     nobody: it will never be accepted
│   ├── TooLong         context_length_exceeded  400     the client: send fewer or shorter messages
│   ├── FormatRefused   format_refused           400     the sender: send the text without markup
│   ├── TargetGone      target_gone              400     nobody: the chat can't be written to
│   ├── NotAccepted     files_not_supported      400     the client: use another model
│   └── ToolsNotSupported tools_not_supported    400     the client: use another model
├── AuthFailed          auth_failed              502*    the operator: a credential is wrong
└── ToolFailed          tool_failed              500     the model: a tool call has failed

Other modules derive errors of their own from these: `ApiError` in `entry/http/errors.py`,
`NoSuchSession` and `SessionBusy` in `control/sessions.py`, `CredentialInUse` in
`control/credentials.py`, `ConfigProblems` in `settings/sources.py`, `NotText`, `NotWritten` and
`FileNotAttached` in `entry/cli`, `CopyRefused` in `types/store_copy.py`, `TurnFailed` in
`embedding.py`.
"""


class HermesError(Exception):
    """The root of all our errors. The text of an error can be shown to the party that must act on
    it."""

    code: str = "internal_error"
    """Identifies the problem for programs. Clients compare codes, so the code of an error never
    changes."""
    status: int = 500
    """The HTTP status of a request that ends with this error."""
    retry_after: float | None = None
    """Seconds after which a new attempt makes sense; None if unknown."""
    temporary: bool = False
    """Whether the same request may succeed later without a change."""

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        if retry_after is not None:
            self.retry_after = retry_after


class ConfigError(HermesError):
    code = "config_error"
    status = 503
    temporary = True


class StoreUnavailable(HermesError):
    code = "store_unavailable"
    status = 503
    temporary = True
    retry_after = 5.0


class TransactionConflict(StoreUnavailable):
    code = "transaction_conflict"


class StoreDamaged(StoreUnavailable):
    pass


class ClaimLost(HermesError):
    code = "claim_lost"
    status = 409


class IntakeClosed(HermesError):
    code = "gateway_draining"
    status = 503
    temporary = True
    retry_after = 1.0


class TooBusy(HermesError):
    code = "rate_limit_exceeded"
    status = 429
    temporary = True
    retry_after = 1.0


class RateLimited(HermesError):
    """`retry_after` is the pause that the remote side requested."""

    code = "rate_limited"
    status = 429
    temporary = True


class Disconnected(HermesError):
    code = "disconnected"
    status = 502
    temporary = True


class Rejected(HermesError):
    code = "rejected"
    status = 400


class TooLong(Rejected):
    code = "context_length_exceeded"


class FormatRefused(Rejected):
    """The platform can't read the markup of a text."""

    code = "format_refused"


class TargetGone(Rejected):
    """The chat does not exist any more, or we may not write to it. Every message to it would be
    refused."""

    code = "target_gone"


class NotAccepted(Rejected):
    """The model does not accept a kind of attachment. `code` names the kind."""

    code = "files_not_supported"

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class ToolsNotSupported(Rejected):
    """The request contains tools, but the model can't use any."""

    code = "tools_not_supported"


class AuthFailed(HermesError):
    code = "auth_failed"
    status = 502
    temporary = True


class ToolFailed(HermesError):
    code = "tool_failed"
