"""Parses the addresses of NATS servers and the credentials in them."""

import re
from urllib.parse import SplitResult, unquote, urlsplit

from hermes.types.errors import ConfigError
from hermes.types.value import Value

NATS_SCHEME = "nats"
NATS_PORT = 4222
_ADDRESS_SEPARATOR = re.compile(r"\s*,\s*")


class NatsAddress(Value):
    """A server, and the credentials for it."""

    host: str
    port: int = NATS_PORT
    user: str | None = None
    password: str | None = None
    token: str | None = None
    """A token that is used instead of a user and a password; None if there is no token."""

    @property
    def place(self) -> str:
        """The name of the server for logs and error messages, without credentials."""
        return f"{self._host}:{self.port}"

    @property
    def url(self) -> str:
        """The address without credentials."""
        return f"{NATS_SCHEME}://{self.place}"

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def __repr__(self) -> str:
        return f"NatsAddress({self.place!r})"


def nats_addresses(url: str) -> list[NatsAddress]:
    """Returns the servers in `bus.url`. The setting contains one or more addresses, separated by
    commas. Raises ConfigError for an invalid address. The error does not quote the address, because
    it may contain a password."""
    return [_address(one) for one in _ADDRESS_SEPARATOR.split(url.strip())]


def _address(url: str) -> NatsAddress:
    scheme, _, _ = url.partition("://")
    if scheme != NATS_SCHEME:
        known = re.fullmatch(r"[a-z][a-z0-9+.-]{0,15}", scheme) and "://" in url
        named = f"begins with {scheme!r}, which is not known" if known else "can't be read"
        raise ConfigError(f"bus.url {named}: use nats://host:{NATS_PORT}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.path.strip("/") or parts.query or parts.fragment:
        # The text of urllib's error is left out, because it may quote the password.
        raise ConfigError(
            f"bus.url can't be read: it has to look like nats://user:password@host:{NATS_PORT},"
            " where the password contains %2F for a slash, %40 for an @ and %2C for a comma"
        )
    return NatsAddress(host=host, port=port or NATS_PORT, **_credentials(parts))


def _credentials(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    if parts.password is None:
        return {"token": unquote(parts.username)}
    return {"user": unquote(parts.username), "password": unquote(parts.password)}
