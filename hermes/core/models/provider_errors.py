"""Translates the errors of providers into our errors, whose text says what to do."""

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hermes.text.redact import redact_tokens
from hermes.types.errors import (
    AuthFailed,
    Disconnected,
    HermesError,
    RateLimited,
    Rejected,
    TooLong,
)
from hermes.types.profile import ModelChoice

LONGEST_QUOTE = 300
OPENAI_WIRES = ("chat", "responses")

_TOO_LONG = re.compile(
    r"context_length_exceeded|context_window_exceeded|exceed_context_size"
    r"|(prompt|input|request) is too long|prompt exceeds max length"
    r"|exceeds? the (available )?context|exceeds? (the )?context limit|context window exceeds"
    r"|exceed(s|ed) (the )?model token limit|maximum (context|prompt|model) length"
    r"|(greater|longer) than the (maximum |model's )?context|input token count.*exceeds"
    r"|`inputs`.{0,30}(must have less than|must be <=) \d+|range of input length should be",
    re.IGNORECASE,
)
_UNPAID = re.compile(
    r"insufficient_quota|billing_|credit balance|insufficient (balance|credit|funds)",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model_not_found|not a valid model|\bmodel\b.{0,80}\b(not found|not exist)", re.IGNORECASE
)
_STATUSES = {
    "rate_limit": 429,
    "quota": 429,
    "overloaded": 529,
    "permission": 403,
    "not_found": 404,
    "too_large": 413,
    "timeout": 408,
    "auth": 401,
    "invalid": 400,
    "policy": 400,
}
"""Maps words in an error's code or type to the corresponding HTTP status."""


class ProviderProblem(Struct, frozen=True):
    message: object = None
    code: str | int | None = None
    type: str | None = None
    metadata: object = None
    """Further data about the error. A router (a provider that passes calls on to others) puts the
    error text of the provider that it has called into the field `raw` of this data."""


class _Body(Struct):
    error: ProviderProblem | str | None = None
    message: object = None
    """The error text. Some servers send it in this field or in `detail`, instead of in `error`."""
    detail: object = None

    def problem(self) -> ProviderProblem:
        found = self.error or self.message or self.detail
        return found if isinstance(found, ProviderProblem) else ProviderProblem(found)


_bodies = msgspec.json.Decoder(_Body | list[_Body])


def refusal(
    choice: ModelChoice, status: int, headers: Mapping[str, str], body: bytes
) -> HermesError:
    """Returns the error for a response whose status is not 200."""
    try:
        decoded = _bodies.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        decoded = []
    first = next(iter(decoded), _Body()) if isinstance(decoded, list) else decoded
    return _error(choice, status, first.problem(), retry_after(headers, time.time()))


def interruption(choice: ModelChoice, problem: ProviderProblem | str) -> HermesError:
    """Returns the error for a problem that is reported in the middle of a stream."""
    found = ProviderProblem(problem) if isinstance(problem, str) else problem
    return _error(choice, _status(found), found)


def unreachable(choice: ModelChoice, error: Exception) -> Disconnected:
    if isinstance(error, TimeoutError):
        return Disconnected(f"{choice.provider} did not answer in time; try again")
    where = redact_tokens(f"{choice.base_url!r}: {error}")
    return Disconnected(f"{choice.provider} can't be reached at {where}")


def _error(
    choice: ModelChoice, status: int, problem: ProviderProblem, wait: float | None = None
) -> HermesError:
    said = _sentence(choice, problem)
    words = f"{problem.code} {problem.type} {said}"
    who, model = choice.provider, choice.model
    # The text of a 401 is not shown, because providers quote parts of the key that they refuse.
    quote = f": {said[:LONGEST_QUOTE]}" if said and status != 401 else ""
    if _TOO_LONG.search(words):
        return TooLong(
            f"the conversation is too long for {model!r} of {who}{quote}; /new begins a new one"
        )
    if status == 402 or _UNPAID.search(words):
        return AuthFailed(f"{who} requires payment ({status}){quote}; add credit to its account")
    if status == 404 or _NO_MODEL.search(words):
        return Rejected(
            f"{who} does not know {model!r} ({status}){quote};"
            f" choose another with `hermes model list`, or {address_advice(choice)}"
        )
    return _by_status(choice, status, quote, wait)


def _by_status(choice: ModelChoice, status: int, quote: str, wait: float | None) -> HermesError:
    who = choice.provider
    match status:
        case 401:
            trouble = "refused the API key" if choice.api_key else "wants an API key"
            return AuthFailed(f"{who} {trouble} (401): set a valid one{_key_place(choice)}")
        case 403:
            return AuthFailed(
                f"{who} does not allow this with our API key (403){quote}; "
                f"set a key that may use {choice.model!r}{_key_place(choice)}"
            )
        case 413:
            return TooLong(
                f"{who} can't accept a request of this size (413){quote}; /new begins a new one"
            )
        case 429:
            return RateLimited(f"{who} requests a pause (429){quote}; try again later", wait)
        case 408 | 409 | 425:
            pass
        case _ if status < 500:
            return Rejected(f"{who} refused the request ({status}){quote or ': check base_url'}")
    trouble = f"{who} could not answer now ({status}){quote}; try again later"
    return Disconnected(trouble) if wait is None else RateLimited(trouble, wait)


def _key_place(choice: ModelChoice) -> str:
    return f" ({choice.key_place})" if choice.key_place else ""


def address_advice(choice: ModelChoice) -> str:
    """Returns advice on correcting the address. It suggests /v1, the path under which most servers
    offer OpenAI's API."""
    base_url = redact_tokens(choice.base_url)
    if choice.wire in OPENAI_WIRES and not urlsplit(choice.base_url).path.strip("/"):
        return f"set the address {base_url.rstrip('/')}/v1: {base_url!r} has no /v1"
    return f"check the address {base_url!r}"


def _sentence(choice: ModelChoice, problem: ProviderProblem) -> str:
    text = str(problem.message or "")
    match problem.metadata:
        case {"raw": str(raw)}:
            text = f"{text}: {raw}"
    text = " ".join(text.split())
    return redact_tokens(text.replace(choice.api_key, "…") if choice.api_key else text)


def _status(problem: ProviderProblem) -> int:
    code = str(problem.code)
    if code.isdigit():
        return int(code)
    words = f"{code} {problem.type}".lower()
    return next((status for word, status in _STATUSES.items() if word in words), 500)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Returns the number of seconds to wait before the next call. The number comes from a header
    that contains seconds, milliseconds or a date. Returns None if there is no such header."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            return _seconds(float(milliseconds) / 1000)
        if (said := headers.get("Retry-After")) is None:
            return None
        if said.replace(".", "", 1).isdigit():
            return _seconds(float(said))
        date = parsedate_to_datetime(said)
    except ValueError:
        return None
    return _seconds((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - now)


def _seconds(wait: float) -> float | None:
    # A server may send `inf`, which is not a usable time.
    return max(0.0, wait) if math.isfinite(wait) else None
