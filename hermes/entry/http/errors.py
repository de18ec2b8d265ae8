"""Errors over HTTP, in the shape that OpenAI's clients know."""

import logging
import math

import msgspec

from hermes.entry.http.reply import Reply
from hermes.streaming.wire import error_type
from hermes.types.errors import HermesError, StoreUnavailable
from hermes.types.events import TurnFinished
from hermes.types.value import Value

log = logging.getLogger(__name__)


class ApiError(HermesError):
    """Ends a request with a status and an error body."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str,
        *,
        param: str | None = None,
        retry_after: float | None = None,
        close: bool = False,
    ) -> None:
        super().__init__(message, retry_after)
        self.status = status
        self.code = code
        self.param = param
        """The field of the request that is wrong."""
        self.close = close
        """The connection is closed, because the rest of the request is not read."""

    def reply(self) -> Reply:
        kind = error_type(self.status)
        error = _Error(message=str(self), type=kind, param=self.param, code=self.code)
        headers = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(math.ceil(self.retry_after))
        if self.close:
            headers["connection"] = "close"
        return Reply(msgspec.json.encode(_Body(error=error)), self.status, headers)


class _Error(Value, omit_defaults=False):
    message: str
    type: str
    param: str | None
    code: str


class _Body(Value):
    error: _Error


def bad_request(message: str, code: str = "invalid_request", param: str | None = None) -> ApiError:
    return ApiError(400, message, code, param=param)


def api_error(error: HermesError) -> ApiError:
    """The error as a client of the API is told it."""
    if isinstance(error, ApiError):
        return error
    message = str(error)
    if isinstance(error, StoreUnavailable):
        # The text names the operator's files.
        log.error("a request was refused: %s", error)
        message = "The store can't be used at the moment; nothing was accepted. Try again."
    return ApiError(error.status, message, error.code, retry_after=error.retry_after)


def failed_turn(finish: TurnFinished) -> ApiError:
    """The error for a turn that failed."""
    code = finish.code or "agent_error"
    return ApiError(finish.status, finish.text, code, retry_after=finish.retry_after)
