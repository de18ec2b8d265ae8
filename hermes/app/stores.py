"""Opens the store that the settings name: SQLite in the home, or a database by its URL."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from urllib.parse import urlsplit

from hermes.settings import Settings
from hermes.settings.sections import StoreSettings
from hermes.state.sqlite.guard import guarded
from hermes.state.sqlite.store import open_store
from hermes.types.deployment import StoreNode
from hermes.types.errors import ConfigError
from hermes.types.store import OwnerKind, Store

OpenStore = Callable[[StoreSettings, OwnerKind | None], AbstractAsyncContextManager[Store]]


@asynccontextmanager
async def home_store(settings: Settings, kind: OwnerKind | None = None) -> AsyncIterator[Store]:
    """Opens the store that the settings name. A process that runs turns passes its kind, and is
    then registered in the store."""
    settings.home.ensure()
    if settings.store.url:
        async with _driver(settings.store.url)(settings.store, kind) as store:
            yield store
        return
    with guarded(settings.home):
        async with open_store(settings.home.store, kind) as store:
            yield store


async def store_nodes(settings: Settings) -> list[StoreNode]:
    """Returns the processes that share the store. The list is empty for SQLite, whose store is used
    on one machine only."""
    if not settings.store.url:
        return []
    async with home_store(settings) as store:
        # Imported here because psycopg is an extra. An open store proves that it is installed.
        from hermes.state.postgres.presence import listed_nodes  # noqa: PLC0415

        return await store.read(listed_nodes)


def _driver(url: str) -> OpenStore:
    return DRIVERS[known_scheme(url, "store.url")]


def known_scheme(url: str, setting: str) -> str:
    """Returns the scheme of the address. Raises ConfigError if there is no driver for it."""
    scheme = urlsplit(url).scheme
    if scheme not in DRIVERS:
        known = ", ".join(f"{name}://" for name in DRIVERS)
        raise ConfigError(f"{setting} begins with {scheme!r}, which is not known: use {known}")
    return scheme


def _postgres(
    settings: StoreSettings, kind: OwnerKind | None
) -> AbstractAsyncContextManager[Store]:
    with postgres_extra():
        # Imported here because psycopg is an extra, and takes a while to import.
        from hermes.state.postgres.store import open_postgres  # noqa: PLC0415
    return open_postgres(settings.url, kind, settings.direct_url)


@contextmanager
def postgres_extra() -> Iterator[None]:
    """Raises ConfigError if an import inside this block fails, which means that the extra
    `postgres` is missing."""
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"store.url needs packages that are missing ({error}): install them with"
            " `pip install 'hermes-gateway[postgres]'`"
        ) from error


DRIVERS: dict[str, OpenStore] = {"postgresql": _postgres, "postgres": _postgres}
"""The drivers of databases other than SQLite, by the scheme of their URLs."""
