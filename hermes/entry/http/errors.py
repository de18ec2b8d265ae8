"""Errors over HTTP, in the format of OpenAI's API."""

import logging
import math
from collections.abc import Mapping

import msgspec

from hermes.entry.http.responses import JsonResponse
from hermes.streaming.wire import error_type
from hermes.types.errors import HermesError, StoreUnavailable
from hermes.types.events import TurnFinished
from hermes.types.value import Value

log = logging.getLogger(__name__)

RATE_LIMIT_SECONDS = 10.0
"""Seconds in the header `Retry-After` of a response with status 429, if the error itself states no
waiting time."""


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
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, retry_after)
        self.status = status
        self.code = code
        self.param = param
        """The field of the request that is wrong."""
        self.close = close
        """Whether to close the connection, because the rest of the request is not read."""
        self.headers = headers or {}
        """Further headers of the response."""


class ResponseError(Value, omit_defaults=False):
    message: str
    """Describes the problem and its solution, for people."""
    type: str
    """OpenAI's name for this kind of error. It depends on the HTTP status."""
    param: str | None
    """The field, header or query parameter of the request that is wrong."""
    code: str
    """The name of the error, by which programs can recognize it."""


class ErrorResponseBody(Value):
    error: ResponseError
    """The error, in the form that OpenAI's API uses."""


def error_response(error: HermesError) -> JsonResponse:
    """Returns the response for an error."""
    message, param = str(error), None
    headers: dict[str, str] = {}
    if isinstance(error, StoreUnavailable):
        # The text of this error names files of the operator, so it is only logged.
        log.error("a request was refused: %s", error)
        message = "The store can't be used at the moment; nothing was accepted. Try again."
    if isinstance(error, ApiError):
        param = error.param
        headers |= error.headers
        if error.close:
            headers["connection"] = "close"
    pause = error.retry_after
    if pause is None and error.status == 429:
        pause = RATE_LIMIT_SECONDS
    if pause is not None:
        headers["retry-after"] = str(math.ceil(pause))
    told = ResponseError(
        message=message, type=error_type(error.status), param=param, code=error.code
    )
    return JsonResponse(msgspec.json.encode(ErrorResponseBody(error=told)), error.status, headers)


def bad_request(message: str, code: str = "invalid_request", param: str | None = None) -> ApiError:
    return ApiError(400, message, code, param=param)


def failed_turn(finish: TurnFinished, headers: Mapping[str, str] | None = None) -> ApiError:
    """Returns the error for a turn that failed. Its response has the headers."""
    code, pause = finish.code or "agent_error", finish.retry_after
    return ApiError(finish.status, finish.text, code, retry_after=pause, headers=headers)


def stopped_turn(finish: TurnFinished, headers: Mapping[str, str]) -> ApiError:
    """Returns the error for a turn that was stopped before its first word. Its response has the
    headers."""
    reason = finish.text or "by a request"
    message = f"The run was stopped before its first word: {reason}. Ask again."
    return ApiError(422, message, "stopped", headers=headers)
