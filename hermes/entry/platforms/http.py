"""The HTTP client of the adapters: one session per account, and network errors as our errors."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TypeVar

import aiohttp
import anyio
import msgspec

from hermes.types.errors import (
    AuthFailed,
    Disconnected,
    HermesError,
    RateLimited,
    Rejected,
    TargetGone,
)
from hermes.types.messages import Attachment
from hermes.types.value import Value

T = TypeVar("T")

CALL_SECONDS, FILE_SECONDS, CLOSE_SECONDS = 30.0, 300.0, 5.0
"""Maximum number of seconds for three actions: a call without a file, a call with a file, and
closing the HTTP session."""


class PlatformRequest(Value):
    method: str
    path: str
    """The part of the address after the root URL of the server."""
    name: str = ""
    """The name of the call in errors. If it is empty, errors contain the path instead. Then the
    path must not contain a secret."""
    body: object = None
    """The body: a form, a payload with its own content type, or a value that is sent as JSON."""
    query: Mapping[str, str | None] = {}
    """The parameters of the query. A parameter that is None is not sent."""
    headers: Mapping[str, str] = {}
    seconds: float = CALL_SECONDS


class PlatformResponse(Value):
    status: int
    headers: Mapping[str, str]
    body: bytes


class PlatformSession:
    """An HTTP session that several tasks share. It is open only while at least one task uses it."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._session: aiohttp.ClientSession | None = None
        self._users = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[aiohttp.ClientSession]:
        """Yields the session, which is closed when the last block that uses it ends."""
        if self._session is None:
            self._session = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())
        session = self._session
        self._users += 1
        try:
            yield session
        finally:
            self._users -= 1
            if not self._users:
                self._session = None
                with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                    await session.close()

    async def send(self, request: PlatformRequest) -> PlatformResponse:
        """Returns the response, whatever its status is. Raises Disconnected if no response
        comes."""
        try:
            async with (
                self.open() as session,
                session.request(
                    request.method,
                    f"{self._root}/{request.path}",
                    data=_data(request.body),
                    headers=request.headers,
                    params={name: one for name, one in request.query.items() if one is not None},
                    timeout=aiohttp.ClientTimeout(total=request.seconds),
                ) as answer,
            ):
                body = await answer.read()
                return PlatformResponse(status=answer.status, headers=answer.headers, body=body)
        except (aiohttp.ClientError, TimeoutError) as error:
            # The original error is not attached, because its text may contain the URL, and the URL
            # may contain a token.
            name = request.name or f"{request.method} {request.path}"
            raise Disconnected(f"{name} failed: {type(error).__name__}") from None


def error_for_status(response: PlatformResponse, said: str, pause: float | None) -> HermesError:
    """Returns the error for a status of 400 or more. `pause` is the waiting time in seconds that
    the body of the response states. If `pause` is None, the header `Retry-After` is used."""
    match response.status:
        case 429:
            header = response.headers.get("Retry-After", "")
            seconds = float(header) if header.isdecimal() else None
            return RateLimited(said, seconds if pause is None else pause)
        case 401:
            return AuthFailed(said)
        case 403:
            return TargetGone(said)
        case status if status < 500:
            return Rejected(said)
        case _:
            return Disconnected(said)


def decoded(body: bytes, returns: type[T]) -> T:
    """Returns the value of a JSON text. Raises Disconnected if the text is not JSON of the type
    `returns`."""
    try:
        return msgspec.json.decode(body, type=returns)
    except msgspec.MsgspecError as error:
        raise Disconnected(f"the server returned an unexpected result: {error}") from error


def decoded_or(default: T, data: bytes | msgspec.Raw) -> T:
    """Returns the value of a JSON text that a person may have written, or `default` if the value is
    not of the same type as `default`."""
    try:
        return msgspec.json.decode(data, type=type(default))
    except msgspec.MsgspecError:
        return default


async def read_attachment(file: Attachment, limit: int, platform: str) -> bytes:
    """Returns the content of a file to send. Raises Rejected if it is larger than `limit` bytes,
    or can't be read."""
    path = anyio.Path(file.path)
    try:
        if (await path.stat()).st_size > limit:
            size = f"{limit // 1024 // 1024} MB"
            raise Rejected(f"{file.file_name} is larger than {size}, the limit of {platform}")
        return await path.read_bytes()
    except OSError as error:
        raise Rejected(f"{file.file_name} can't be read: {error.strerror}") from error


def _data(body: object) -> aiohttp.Payload | aiohttp.FormData | None:
    if body is None or isinstance(body, aiohttp.Payload | aiohttp.FormData):
        return body
    return aiohttp.BytesPayload(msgspec.json.encode(body), content_type="application/json")
