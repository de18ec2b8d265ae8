"""Opens the store that the settings name: SQLite in the home, or a database by its URL."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from urllib.parse import urlsplit

from hermes.settings import Settings
from hermes.state.folder_ids import home_folder, shared_folder
from hermes.state.sqlite.guard import guarded
from hermes.state.sqlite.store import open_store
from hermes.types.bus import OpenBus
from hermes.types.deployment import NodeFolder, StoreNode
from hermes.types.errors import ConfigError
from hermes.types.identity import FolderId
from hermes.types.store import OwnerKind, Store

OpenStore = Callable[
    [Settings, OwnerKind | None, FolderId | None], AbstractAsyncContextManager[Store]
]


@asynccontextmanager
async def home_store(
    settings: Settings, kind: OwnerKind | None = None, folder: FolderId | None = None
) -> AsyncIterator[Store]:
    """Opens the store that the settings name. A process that runs turns passes its `kind` and its
    `folder`, and the store then registers the process."""
    settings.home.ensure()
    if settings.store.url:
        async with _driver(settings.store.url)(settings, kind, folder) as store:
            yield store
        return
    if settings.bus.url:
        source = settings.explain("bus.url").source
        raise ConfigError(
            f"bus.url is set ({source}), but the store is a SQLite file. All processes that use it"
            " are on one machine and need no bus: remove bus.url, or set store.url to the address"
            " of a PostgreSQL database"
        )
    with guarded(settings.home):
        async with open_store(settings.home.store, kind, folder) as store:
            yield store


def node_folder(settings: Settings) -> NodeFolder:
    """Returns the folder with the files of the agents. If the folder has no id yet, creates one.

    Raises ConfigError if store.shared_folder can't be used.
    """
    settings.home.ensure()
    if settings.store.shared_folder:
        return shared_folder(settings.files.root, settings.home)
    return home_folder(settings.home)


async def store_nodes(settings: Settings) -> list[StoreNode]:
    """Returns the processes that share the store. The list is empty for SQLite, because a SQLite
    store is used on one machine only."""
    if not settings.store.url:
        return []
    async with home_store(settings) as store:
        # psycopg is an extra that may not be installed, so the import is not at the top of the
        # module. At this point psycopg is installed, because the open store uses it.
        from hermes.state.postgres.presence import listed_nodes  # noqa: PLC0415

        return await store.read(listed_nodes)


def _driver(url: str) -> OpenStore:
    return DRIVERS[known_scheme(url, "store.url")]


def known_scheme(url: str, setting: str) -> str:
    """Returns the scheme of the address. Raises ConfigError if Hermes has no driver for this
    scheme."""
    scheme = urlsplit(url).scheme
    if scheme not in DRIVERS:
        known = ", ".join(f"{name}://" for name in DRIVERS)
        raise ConfigError(f"{setting} begins with {scheme!r}, which is not known: use {known}")
    return scheme


def _postgres(
    settings: Settings, kind: OwnerKind | None, folder: FolderId | None
) -> AbstractAsyncContextManager[Store]:
    with postgres_extra():
        # Imported here because psycopg is an extra, and takes a while to import.
        from hermes.state.postgres.store import open_postgres  # noqa: PLC0415
    open_bus = _nats(settings.bus.url) if kind and settings.bus.url else None
    return open_postgres(settings.store.url, kind, settings.store.direct_url, folder, open_bus)


def nats_extra() -> AbstractContextManager[None]:
    """Does the same as `postgres_extra`, but for the extra `nats`."""
    return _extra("nats", "bus.url")


def _nats(url: str) -> OpenBus:
    with nats_extra():
        # Imported here because nats-py is an extra.
        from hermes.state.nats.address import nats_addresses  # noqa: PLC0415
        from hermes.state.nats.bus import open_nats_bus  # noqa: PLC0415
    return partial(open_nats_bus, nats_addresses(url))


def postgres_extra() -> AbstractContextManager[None]:
    """Returns a context manager. If an import inside the block fails, the context manager raises a
    ConfigError that says how to install the extra `postgres`."""
    return _extra("postgres", "store.url")


@contextmanager
def _extra(name: str, setting: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ConfigError(
            f"{setting} needs packages that are missing ({error}): install them with"
            f" `pip install 'hermes-gateway[{name}]'`"
        ) from error


DRIVERS: dict[str, OpenStore] = {"postgresql": _postgres, "postgres": _postgres}
"""The drivers of databases other than SQLite, by the scheme of their URLs."""
