"""Who calls: bearer keys, and a brake for those who guess."""

import hashlib
import hmac
import time
from collections import OrderedDict

from hermes.entry.http.errors import ApiError
from hermes.types.identity import Principal

GUESSES = 10
"""Wrong keys from one address in a minute."""
ADDRESSES = 1024


class Auth:
    def __init__(self, key: str) -> None:
        self._digest = hashlib.sha256(key.encode()).digest()
        self._guesses: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def principal(self, authorization: str, address: str) -> Principal:
        """Whose key this is; ApiError for anybody else's."""
        scheme, _, key = authorization.partition(" ")
        given = hashlib.sha256(key.strip().encode("latin-1", "replace")).digest()
        if scheme.lower() == "bearer" and hmac.compare_digest(given, self._digest):
            return Principal(name="default")
        if key:
            self._count(address)
        raise ApiError(
            401,
            "Invalid API key: send `Authorization: Bearer <key>` with the key of this gateway.",
            "invalid_api_key",
        )

    def _count(self, address: str) -> None:
        now = time.monotonic()
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
