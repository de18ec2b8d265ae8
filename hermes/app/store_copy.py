"""Copies the configured store to another place."""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from hermes.app.stores import known_scheme, postgres_extra
from hermes.settings import Settings
from hermes.state.copying import CopyEnd, ReportStep, StoreCopy
from hermes.state.sqlite.copy_ends import sqlite_source, sqlite_target
from hermes.types.errors import ConfigError
from hermes.types.store_copy import CopyResult

HOME_FILE = "sqlite"
"""The value of `to` that selects the SQLite database of the home."""
_HIDDEN = "PASSWORD"


async def copy_store(settings: Settings, to: str, report: ReportStep) -> CopyResult:
    """Copies the configured store to `to`: an address, the path of a new file, or `sqlite`.

    Raises CopyRefused if the source is in use or the target contains other data.
    """
    settings.home.ensure()
    async with _source(settings) as source, _target(settings, to, source.place) as target:
        copy = StoreCopy(source, target, report)
        await copy.run()
    return CopyResult(
        source=source.place,
        target=target.place,
        tables=copy.rows,
        resumed=copy.resumed,
        advice=_advice(settings, to),
    )


def _source(settings: Settings) -> AbstractAsyncContextManager[CopyEnd]:
    if not settings.store.url:
        return sqlite_source(settings.home)
    known_scheme(settings.store.url, "store.url")
    with postgres_extra():
        # Imported here because psycopg is an extra.
        from hermes.state.postgres.copy_ends import postgres_source  # noqa: PLC0415
    return postgres_source(settings.store.url, settings.store.direct_url)


def _target(settings: Settings, to: str, source: str) -> AbstractAsyncContextManager[CopyEnd]:
    if "://" not in to:
        return sqlite_target(_path(settings, to), source)
    known_scheme(to, "--to")
    with postgres_extra():
        from hermes.state.postgres.copy_ends import postgres_target  # noqa: PLC0415
    return postgres_target(to, source)


def _path(settings: Settings, to: str) -> Path:
    if to == HOME_FILE:
        return settings.home.store
    path = Path(to).expanduser()
    if "/" not in to and path.suffix != ".db":
        raise ConfigError(
            f"--to {to!r} is not a place for a copy: use an address such as"
            f" postgresql://user@host/name, {HOME_FILE!r} for {settings.home.store}, or the path of"
            " a new file"
        )
    return path


def _advice(settings: Settings, to: str) -> str:
    """Returns advice on how to configure a gateway that uses the copy."""
    if "://" in to:
        line = f"HERMES_STORE_URL={shown_url(to)}"
        hint = " (with the password)" if _HIDDEN in line else ""
        advice = f"put this line into {settings.home.dotenv}{hint}:\n  {line}"
    else:
        path, store = _path(settings, to).resolve(), settings.home.store
        moved = "" if path == store.resolve() else f"move {path} to {store}, and "
        source = settings.explain("store.url").source
        removed = f"remove store.url, which is set in {source}" if settings.store.url else ""
        advice = f"{moved}{removed}".removesuffix(", and ")
    if settings.store.direct_url:
        source = settings.explain("store.direct_url").source
        advice += f"\nRemove or change store.direct_url too, which is set in {source}."
    return advice


def shown_url(url: str) -> str:
    """Returns the address with a placeholder instead of the password."""
    parts = urlsplit(url)
    place = parts.netloc
    if parts.password is not None:
        user, _, host = place.rpartition("@")
        place = f"{user.partition(':')[0]}:{_HIDDEN}@{host}"
    options = [
        (name, _HIDDEN if name == "password" else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    ]
    return parts._replace(
        netloc=place, query=urlencode(options, safe="/", quote_via=quote)
    ).geturl()
