"""A SQLite database as the source or the target of a copy."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.state.copy_record import CREATE_RECORD, begin_record, load_record
from hermes.state.locks import FileLock
from hermes.state.paths import Home, sync_folder
from hermes.state.schema import MIGRATIONS
from hermes.state.sqlite.files import parts_of
from hermes.state.sqlite.guard import guarded
from hermes.state.sqlite.migration import schema_version
from hermes.state.sqlite.owner_locks import is_alive
from hermes.state.sqlite.store import locks_of, open_store
from hermes.state.table_shapes import ColumnKind, TableShape, our_tables, quoted
from hermes.types.errors import StoreUnavailable
from hermes.types.identity import OwnerId
from hermes.types.store import Store, Work
from hermes.types.store_copy import CopyRefused

_KINDS: dict[str, ColumnKind] = {
    "integer": "integer",
    "real": "real",
    "text": "text",
    "blob": "bytes",
}


class SQLiteCopyEnd:
    """The source or the target of a copy, if it is a SQLite database. Implements `CopyEnd`."""

    def __init__(self, store: Store, place: Path) -> None:
        self.store = store
        self.place = str(place)

    def shapes(self) -> Work[tuple[TableShape, ...]]:
        found: list[TableShape] = []
        for name in (yield from _table_names()):
            columns = yield "select name, type, pk from pragma_table_info(?)", (name,)
            found.append(
                TableShape(
                    name=name,
                    columns=tuple(
                        sorted((column, _KINDS[kind.lower()]) for column, kind, _ in columns)
                    ),
                    key=tuple(column for column, _, place in sorted(columns, key=_place) if place),
                )
            )
        return tuple(found)

    def counters(self) -> Work[dict[str, int]]:
        found: dict[str, int] = {}
        for table in (yield from self.shapes()):
            if dict(table.columns)[table.key[0]] == "integer":
                rows = yield f"select max({quoted(table.key[0])}) from {quoted(table.name)}", ()  # noqa: S608
                found[table.name] = rows[0][0] or 0
        # For tables with `autoincrement`, SQLite stores the highest number, even if the row with
        # this number was deleted.
        rows = yield "select name, seq from sqlite_sequence", ()
        return found | dict(rows)

    def settle(self, counters: dict[str, int]) -> Work[None]:
        rows = yield "select name from sqlite_master where sql like '%autoincrement%'", ()
        for (name,) in rows:
            yield "delete from sqlite_sequence where name = ?", (name,)
            yield (
                "insert into sqlite_sequence (name, seq) values (?, ?)",
                (name, counters.get(name, 0)),
            )

    async def confirm(self) -> None:
        """Does nothing, because the kernel keeps the lock for as long as this process runs."""


def _place(column: tuple[str, str, int]) -> int:
    """Returns the position of a column in the primary key."""
    return column[2]


def _table_names() -> Work[list[str]]:
    rows = yield "select name from sqlite_master where type = 'table' order by name", ()
    return [name for (name,) in rows if name in our_tables()]


@asynccontextmanager
async def sqlite_source(home: Home) -> AsyncIterator[SQLiteCopyEnd]:
    """Yields the database of the home. No other process can open it until the block ends."""
    with guarded(home) as lock:
        if not home.store.exists():
            raise CopyRefused(f"there is nothing to copy: {home.store} does not exist")
        async with open_store(home.store) as store:
            if not lock.try_acquire():
                users = await store.read(_users, locks_of(home.store))
                raise CopyRefused(
                    f"{home.store} is in use by {users}: stop every gateway (`hermes gateway stop`)"
                    " and close every terminal, then copy"
                )
            yield SQLiteCopyEnd(store, home.store.resolve())


def _users(locks: Path) -> Work[str]:
    """Returns a text that names the running processes that use the database."""
    rows = yield "select id, kind, pid from owners order by started_at", ()
    alive = [f"a {kind} (pid {pid})" for id, kind, pid in rows if is_alive(locks, OwnerId(id))]
    return ", ".join(alive) or "another hermes process"


@asynccontextmanager
async def sqlite_target(path: Path, source: str) -> AsyncIterator[SQLiteCopyEnd]:
    """Yields a new database, which gets the name `path` when the block ends without an error.

    Until then the database has another name. If this copy is interrupted, a later copy continues
    with the unfinished database.
    """
    path = _free_path(path, source)
    unfinished = unfinished_copy(path)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(path.with_name(f"{unfinished.name}.lock"))
    except OSError as error:
        raise StoreUnavailable(f"{path} can't be written ({error.strerror})") from error
    with lock:
        if not lock.try_acquire():
            raise CopyRefused(f"another process copies a store to {path}: wait until it is done")
        _require_this_version(unfinished)
        async with open_store(unfinished) as store:
            await store.run(_begin, source)
            record = await store.read(load_record)
            if record is None or record.source != source:
                raise CopyRefused(
                    f"{unfinished} is an unfinished copy of another store: remove the file"
                )
            yield SQLiteCopyEnd(store, path)
        try:
            # The file gets its name with a hard link, because a rename would replace a database
            # that another process has created meanwhile.
            os.link(unfinished, path)
        except FileExistsError as error:
            raise CopyRefused(
                f"{path} was made by another process meanwhile: remove it and run the command again"
            ) from error
        unfinished.unlink()
        lock.path.unlink()
        sync_folder(path.parent)


def unfinished_copy(path: Path) -> Path:
    """Returns the path of the file that gets the name `path` when the copy is complete."""
    return path.with_name(f"{path.name}-copy")


def _free_path(path: Path, source: str) -> Path:
    """Returns the path with its links resolved. Raises CopyRefused if a database exists there."""
    path = path.resolve()
    if path == Path(source):
        raise CopyRefused(f"{path} is the source of the copy: name another target")
    unfinished = unfinished_copy(path)
    if path.exists() and unfinished.exists() and path.samefile(unfinished):
        # `path` and `unfinished` are the same file, because an earlier copy was killed after
        # `os.link` in `sqlite_target`. So that copy is complete.
        unfinished.unlink()
    for existing in (path, *parts_of(path)):
        if existing.exists():
            raise CopyRefused(
                f"{existing} exists already: move it to another folder, or name another file"
            )
    return path


def _require_this_version(path: Path) -> None:
    if path.exists() and (version := schema_version(path)) not in (0, len(MIGRATIONS)):
        raise CopyRefused(
            f"{path} is an unfinished copy by another version of hermes (schema {version}, this"
            f" version has {len(MIGRATIONS)}): remove the file"
        )


def _begin(source: str) -> Work[None]:
    yield CREATE_RECORD, ()
    yield from begin_record(source)
