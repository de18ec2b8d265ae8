"""What goes wrong over HTTP, in the shape that OpenAI's clients know."""

import logging
import math

import msgspec

from hermes.entry.http.reply import Reply
from hermes.types.errors import HermesError, IntakeClosed, StoreUnavailable, TooBusy
from hermes.types.events import TurnFinished
from hermes.types.value import Value

log = logging.getLogger(__name__)


class ApiError(Exception):
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
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self.close = close
        """The rest of the request is not read."""

    def reply(self) -> Reply:
        error = _Error(message=str(self), type=_type(self.status), param=self.param, code=self.code)
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


def _type(status: int) -> str:
    if status == 429:
        return "rate_limit_error"
    return "server_error" if status >= 500 else "invalid_request_error"


def bad_request(message: str, code: str = "invalid_request", param: str | None = None) -> ApiError:
    return ApiError(400, message, code, param=param)


def refused_intake(error: HermesError) -> ApiError:
    """Why a message could not be taken in now."""
    match error:
        case IntakeClosed():
            return ApiError(503, str(error), "gateway_draining", retry_after=1)
        case TooBusy(retry_after=pause):
            return ApiError(429, str(error), "rate_limit_exceeded", retry_after=pause)
        case StoreUnavailable():
            log.error("a request was turned away: %s", error)
            message = "Messages can't be stored at the moment; nothing was accepted. Try again."
            return ApiError(503, message, "store_unavailable", retry_after=5)
        case _:
            return ApiError(500, str(error), "internal_error")


_FAILURES = {
    "rate_limited": 429,
    "rejected": 400,
    "config_error": 503,
    "deadline": 504,
    "auth_failed": 502,
    "disconnected": 502,
}


def failed_turn(finish: TurnFinished) -> ApiError:
    """Why a turn came to nothing."""
    code = finish.code or "agent_error"
    return ApiError(_FAILURES.get(code, 500), finish.text, code)
