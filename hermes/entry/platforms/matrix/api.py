"""Calls Matrix's client-server API, and translates its errors into ours."""

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import quote

from msgspec.structs import replace

from hermes.entry.platforms import http
from hermes.entry.platforms.http import PlatformRequest
from hermes.entry.platforms.matrix.manifest import MatrixAccount
from hermes.entry.platforms.matrix.schema import Login, Problem
from hermes.types.errors import AuthFailed, Disconnected, HermesError, Rejected

T = TypeVar("T")


def api_path(*parts: str) -> str:
    """Returns the path of an endpoint. Special characters in the parts are percent-encoded."""
    return "/".join(["_matrix/client/v3", *(quote(part, safe="") for part in parts)])


def error_for(response: http.PlatformResponse) -> HermesError:
    """Returns the error for a call that failed."""
    problem = http.decoded_or(Problem(), response.body)
    if not problem.errcode:
        # A homeserver always names an error code, so this response is from a proxy in front of it.
        return Disconnected(f"HTTP status {response.status}")
    pause = None if problem.retry_after_ms is None else problem.retry_after_ms / 1000
    return http.error_for_status(response, f"{problem.errcode}: {problem.error}", pause)


class MatrixApi:
    """Calls the API of a homeserver with one account. No error that this class raises contains the
    account's credentials."""

    def __init__(self, account: MatrixAccount, device_id: str) -> None:
        self._account, self._device_id = account, device_id
        self.http = http.PlatformSession(account.homeserver)
        self._login: Login | None = None

    async def login(self) -> Login:
        """Returns the user id and the access token. With a password, the first call logs in."""
        if self._login is None:
            self._login = await self._log_in()
        return self._login

    async def _log_in(self) -> Login:
        if token := self._account.access_token:
            whoami = PlatformRequest(method="GET", path=api_path("account", "whoami"))
            return replace(http.decoded(await self._send(whoami, token), Login), access_token=token)
        body = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": self._account.user},
            "password": self._account.password,
            # A homeserver recognizes a repeated transaction id only from the same device, so every
            # login names the same device.
            "device_id": self._device_id,
        }
        request = PlatformRequest(method="POST", path=api_path("login"), body=body)
        try:
            return http.decoded(await self._send(request), Login)
        except Rejected as error:
            raise AuthFailed(f"the login of {self._account.user} failed: {error}") from None

    async def verify(self) -> str:
        """Returns the user id for the access token. If the account has only a password, checks only
        that the homeserver answers, because a login with the password ends earlier logins."""
        if self._account.access_token:
            return (await self.login()).user_id
        await self._send(PlatformRequest(method="GET", path=api_path("login")))
        return f"the homeserver of {self._account.user} answers; the password was not tried"

    async def call(
        self,
        method: str,
        path: str,
        returns: type[T],
        body: object = None,
        query: Mapping[str, str | None] = {},
        wait: float = 0.0,
    ) -> T:
        """Calls an endpoint that returns JSON. `wait` is the time in seconds that the call may take
        in addition to the usual time."""
        seconds = http.CALL_SECONDS + wait
        request = PlatformRequest(method=method, path=path, body=body, query=query, seconds=seconds)
        return http.decoded(await self.send(request), returns)

    async def find(self, path: str, returns: type[T]) -> T | None:
        """Returns the result of a GET, or None if the object is missing or the account is not
        allowed to read it."""
        try:
            return await self.call("GET", path, returns)
        except Rejected:
            return None

    async def send(self, request: PlatformRequest) -> bytes:
        try:
            return await self._send(request, (await self.login()).access_token)
        except AuthFailed as error:
            # A login with the password can be repeated. An access token from the settings can't be
            # renewed.
            if self._account.access_token or self._login is None:
                raise
            self._login = None
            raise Disconnected(f"the login has ended: {error}") from None

    async def _send(self, request: PlatformRequest, token: str = "") -> bytes:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        response = await self.http.send(replace(request, headers=headers))
        if response.status != 200:
            raise error_for(response)
        return response.body
