"""Finds the principal (the authenticated identity) to which a request's bearer key belongs, and
slows down clients that guess keys."""

import hashlib
import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

import anyio
from starlette.requests import Request

from hermes.entry.http.errors import ApiError
from hermes.types.identity import OWNER, Principal

GUESSES = 10
"""Number of wrong keys that one address can send before its errors are delayed."""
FORGET_SECONDS = 60.0
"""If an address sends no wrong key for this many seconds, its earlier wrong keys are forgotten."""
ADDRESSES = 1024
"""Maximum number of addresses whose wrong keys are counted."""
DELAY_SECONDS = 1.0
"""Seconds by which the error for a wrong key is delayed, after the address has sent GUESSES wrong
keys."""
DELAYED = 32
"""Maximum number of answers to wrong keys that are delayed at the same time. While so many answers
are delayed, further wrong keys are answered at once."""
KEY_CHARACTERS = 1024
"""Maximum length of a key. A longer key is wrong, and is not hashed."""


class Auth:
    """Checks keys, and counts the wrong keys of each address."""

    def __init__(self, key: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._digest = hashlib.sha256(key.encode()).digest()
        self._guesses: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._delayed = 0

    async def principal(self, authorization: str, address: str) -> Principal:
        """Returns the principal of the key in the header. Raises ApiError if the header has no
        valid key.

        The error is delayed if the address has sent many wrong keys. A request with the right key
        is never delayed.
        """
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() == "bearer" and self._is_ours(key.strip()):
            return Principal(name="default", person=OWNER)
        if key and self._count(address) > GUESSES:
            if self._delayed < DELAYED:
                await self._delay()
            message = "Too many wrong keys from this address; wait before the next try."
            raise ApiError(429, message, "too_many_wrong_keys", retry_after=DELAY_SECONDS)
        raise ApiError(
            401,
            "Invalid API key: send `Authorization: Bearer <key>` with the key of this gateway.",
            "invalid_api_key",
        )

    def _is_ours(self, key: str) -> bool:
        if len(key) > KEY_CHARACTERS:
            return False
        given = hashlib.sha256(key.encode("latin-1", "replace")).digest()
        return hmac.compare_digest(given, self._digest)

    def _count(self, address: str) -> int:
        """Counts one more wrong key of the address. Returns the number of its wrong keys so far."""
        now, address = self._clock(), network_of(address)
        last, count = self._guesses.pop(address, (now, 0))
        if now - last > FORGET_SECONDS:
            count = 0
        self._guesses[address] = (now, count + 1)
        if len(self._guesses) > ADDRESSES:
            self._guesses.popitem(last=False)
        return count + 1

    async def _delay(self) -> None:
        self._delayed += 1
        try:
            await anyio.sleep(DELAY_SECONDS)
        finally:
            self._delayed -= 1


def network_of(address: str) -> str:
    """Returns the address. For an IPv6 address, returns its /64 network, because one client can use
    all addresses of such a network."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.IPv6Network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address


def principal_of(request: Request) -> Principal:
    """Returns the principal that the key middleware has found. Endpoints that need no key must not
    call this function, because their requests have no principal."""
    principal = request.scope["user"]
    assert isinstance(principal, Principal)
    return principal
