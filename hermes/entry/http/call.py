"""A request that was let in, and what answers it."""

from collections.abc import Awaitable
from typing import Protocol

from starlette.requests import Request
from starlette.types import Send

from hermes.entry.http.reply import Reply
from hermes.types.identity import Principal


class Call:
    """A request that was let in."""

    __slots__ = ("body", "headers", "patience", "principal", "request", "send")

    def __init__(
        self,
        request: Request,
        body: bytes,
        principal: Principal,
        send: Send,
        headers: dict[str, str],
        patience: float,
    ) -> None:
        self.request = request
        self.body = body
        self.principal = principal
        self.send = send
        self.headers = headers
        """What a streamed response must carry for the browser that asked."""
        self.patience = patience
        """Seconds after which a client that does not read is cut."""


class Handler(Protocol):
    """Returns the reply to send, or None when it has streamed one."""

    def __call__(self, call: Call) -> Awaitable[Reply | None]: ...
