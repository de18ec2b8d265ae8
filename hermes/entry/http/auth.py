"""Bearer keys: finds the principal of a request's key, and limits clients that guess keys."""

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable

from starlette.requests import Request

from hermes.entry.http.errors import ApiError
from hermes.types.identity import OWNER, Principal

GUESSES = 10
"""Wrong keys that one address may send in a minute."""
ADDRESSES = 1024
"""Addresses whose wrong keys are counted at the same time."""


class Auth:
    def __init__(self, key: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._digest = hashlib.sha256(key.encode()).digest()
        self._guesses: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def principal(self, authorization: str, address: str) -> Principal:
        """The principal whose key the header carries; ApiError if it carries none of ours."""
        scheme, _, key = authorization.partition(" ")
        given = hashlib.sha256(key.strip().encode("latin-1", "replace")).digest()
        if scheme.lower() == "bearer" and hmac.compare_digest(given, self._digest):
            return Principal(name="default", person=OWNER)
        if key:
            self._count(address)
        raise ApiError(
            401,
            "Invalid API key: send `Authorization: Bearer <key>` with the key of this gateway.",
            "invalid_api_key",
        )

    def _count(self, address: str) -> None:
        now = self._clock()
        since, count = self._guesses.pop(address, (now, 0))
        if now - since > 60:
            since, count = now, 0
        self._guesses[address] = (since, count + 1)
        if len(self._guesses) > ADDRESSES:
            self._guesses.popitem(last=False)
        if count >= GUESSES:
            pause = since + 60 - now
            message = "Too many wrong keys from this address; wait before the next try."
            raise ApiError(429, message, "too_many_wrong_keys", retry_after=pause)


def principal_of(request: Request) -> Principal:
    """The principal that the key middleware has found. Endpoints without a key have none."""
    principal = request.scope["user"]
    assert isinstance(principal, Principal)
    return principal
