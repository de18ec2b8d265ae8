"""Declares Matrix: its settings and its accounts."""

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from hermes.settings.schema import Aliases
from hermes.types.errors import ConfigError
from hermes.types.platforms import Platform, PlatformAdapter, refs_like
from hermes.types.value import Value


class MatrixAccount(Value):
    homeserver: Annotated[str, Aliases(env=("MATRIX_HOMESERVER",))] = ""
    """The address of the homeserver, such as `https://matrix.org`."""
    access_token: Annotated[str, Aliases(env=("MATRIX_ACCESS_TOKEN",), secret=True)] = ""
    """The access token of the agent's account."""
    user: Annotated[str, Aliases(env=("MATRIX_USER", "MATRIX_USER_ID"), keys=("user_id",))] = ""
    """The user id for a login with a password, such as `@hermes:matrix.org`."""
    password: Annotated[str, Aliases(env=("MATRIX_PASSWORD",), secret=True)] = ""
    """The password of the user. It is not used if there is an access token."""


class MatrixConfig(MatrixAccount):
    accounts: dict[str, MatrixAccount] = msgspec.field(default_factory=dict)
    """Additional accounts, by a name of your choice. An account without a homeserver uses
    `platforms.matrix.homeserver`."""


def accounts(config: MatrixConfig) -> Sequence[str]:
    """Returns the configured accounts. Raises ConfigError for values that can't be used."""
    default = ["matrix"] if config.access_token or config.user or config.password else []
    names = [*default, *(f"matrix.{name}" for name in config.accounts)]
    found = {name: credentials(name, config) for name in names}
    for name, one in found.items():
        if not one.access_token and not (one.user and one.password):
            raise ConfigError(f"{name} needs an access_token, or a user and a password")
        if not urlsplit(one.homeserver).hostname:
            hint = "set MATRIX_HOMESERVER to an address such as https://matrix.org"
            raise ConfigError(f"the homeserver of {name} is not a URL ({one.homeserver!r}): {hint}")
    if len({one.access_token or one.user for one in found.values()}) < len(found):
        raise ConfigError("two accounts of matrix have the same credentials")
    return names


def credentials(account: str, config: MatrixConfig) -> MatrixAccount:
    name = account.partition(".")[2]
    one = config.accounts[name] if name else config
    return replace(one, homeserver=(one.homeserver or config.homeserver).rstrip("/"))


def make(account: str, config: MatrixConfig) -> PlatformAdapter:
    # aiohttp is slow to import, and many commands do not need it.
    from hermes.entry.platforms.matrix.adapter import MatrixAdapter  # noqa: PLC0415

    return MatrixAdapter(account, credentials(account, config))


def credential(account: str, config: MatrixConfig) -> str:
    return (found := credentials(account, config)).access_token or found.user


MATRIX = Platform(
    name="matrix",
    config=MatrixConfig,
    accounts=accounts,
    make=make,
    credential=credential,
    quality="silver",
    refs=refs_like(r"(![^\s:]+(?::[\w.-]+(?::\d+)?)?)(?::(\$\S+))?", "!room:matrix.org"),
)
