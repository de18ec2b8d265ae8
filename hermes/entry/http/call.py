"""A request that was let in, and what answers it."""

from collections.abc import Awaitable
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Send

from hermes.entry.http.auth import Principal


class Call:
    """A request that was let in."""

    __slots__ = ("body", "headers", "principal", "request", "send")

    def __init__(
        self,
        request: Request,
        body: bytes,
        principal: Principal,
        send: Send,
        headers: dict[str, str],
    ) -> None:
        self.request = request
        self.body = body
        self.principal = principal
        self.send = send
        self.headers = headers
        """What a streamed response must carry for the browser that asked."""


class Handler(Protocol):
    """Returns the response to send, or None when it has streamed one."""

    def __call__(self, call: Call) -> Awaitable[Response | None]: ...
