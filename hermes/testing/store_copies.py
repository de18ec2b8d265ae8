"""`python -m hermes.testing.store_copies`: kills processes that copy one store to another, and
checks the copies."""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from os import defpath
from pathlib import Path

import anyio
import msgspec

from hermes.app.store_copy import copy_store
from hermes.settings import load
from hermes.state.paths import STORE_NAME, Home
from hermes.state.postgres.copy_ends import postgres_source
from hermes.state.sqlite.copy_ends import sqlite_source
from hermes.state.table_shapes import BATCH_ROWS, TableShape
from hermes.testing.full_tables import every_row, fill_table, fill_tables, table_rules
from hermes.testing.postgres import running_postgres
from hermes.types.store import Work
from hermes.types.store_copy import CopyResult, CopyStep

ODD_ROWS = 40
"""Number of rows that are written to each table other than `messages`."""


class KillAt:
    """A progress callback that kills this process after the given number of batches."""

    def __init__(self, batches: int) -> None:
        self._left = batches

    def __call__(self, step: CopyStep) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def killed_copy(home: Path, url: str, to: str, batches: int) -> None:
    """Copies the home's store in a process that is killed after this many batches."""
    arguments = [str(home), to, "--url", url, "--kill-after", str(batches)]
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "hermes.testing.store_copies", "copy", *arguments],
        env={"PATH": defpath},
        capture_output=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()


def completed_copy(home: Path, url: str, to: str) -> CopyResult:
    """Runs `hermes store copy` and returns its result."""
    environ = {"PATH": defpath, "HERMES_HOME": str(home), "HERMES_STORE_URL": url}
    ended = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "hermes", "store", "copy", "--to", to, "--json"],
        env=environ,
        capture_output=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return msgspec.json.decode(ended.stdout, type=CopyResult)


async def make_source(home: Path, messages: int) -> None:
    """Makes a SQLite store with rows in every table, and with this many messages."""
    Home(root=home).ensure()
    (home / STORE_NAME).touch(mode=0o600)
    async with sqlite_source(Home(root=home)) as source:
        shapes = await source.store.read(source.shapes)
        await source.store.run(fill_tables, shapes, 1, ODD_ROWS)
        (table,) = (shape for shape in shapes if shape.name == "messages")
        for first in range(ODD_ROWS + 1, messages + 1, 5000):
            count = min(5000, messages + 1 - first)
            await source.store.run(_fill, table, first, count)


def _fill(table: TableShape, first: int, count: int) -> Work[None]:
    yield from fill_table(table, table_rules()[table.name], first, count)


async def assert_equal(home: Path, url: str) -> None:
    """Checks that the SQLite store in `home` and the PostgreSQL store at `url` contain the same
    rows."""
    async with sqlite_source(Home(root=home)) as ours, postgres_source(url, "") as theirs:
        left = await ours.store.read(every_row, ours)
        right = await theirs.store.read(every_row, theirs)
        assert left.keys() == right.keys()
        for table, rows in left.items():
            assert rows == right[table], f"{table} differs"
        counted = await ours.store.read(ours.counters)
        assert counted == await theirs.store.read(theirs.counters)


def check_copies(folder: Path, url: str, messages: int, kills: Sequence[int]) -> list[float]:
    """Copies a store to PostgreSQL and back, and checks that the stores are equal. In each
    direction, the copy is started once for each number in `kills`, and is killed after that number
    of batches. Then it is started a last time and runs to the end.

    Returns the seconds that each direction took.
    """
    there, back = folder / "there", folder / "back"
    anyio.run(make_source, there, messages)
    seconds: list[float] = []
    for home, source, to in ((there, "", url), (back, url, "sqlite")):
        began = time.monotonic()
        for batches in kills:
            killed_copy(home, source, to, batches)
        result = completed_copy(home, source, to)
        seconds.append(time.monotonic() - began)
        assert result.resumed
        assert result.tables["messages"] == messages
        anyio.run(assert_equal, home, url)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="copy there and back, killed twice on each way")
    check.add_argument("--messages", type=int, default=200_000)
    copy = commands.add_parser("copy", help="one copy, which kills itself")
    copy.add_argument("home", type=Path)
    copy.add_argument("to")
    copy.add_argument("--url", default="")
    copy.add_argument("--kill-after", type=int, required=True)
    given = parser.parse_args()
    if given.command == "copy":
        settings = load(given.home, {"HERMES_STORE_URL": given.url})
        anyio.run(copy_store, settings, given.to, KillAt(given.kill_after))
        return
    # The first run is killed after a third of the batches. The second run compares these batches
    # with the source, copies another third, and is killed.
    third = given.messages // BATCH_ROWS // 3
    with tempfile.TemporaryDirectory() as folder, running_postgres() as server:
        server.execute("create database copied")
        kills = (third, 2 * third)
        there, back = check_copies(Path(folder), server.url("copied"), given.messages, kills)
    sys.stdout.write(
        f"{given.messages} messages, killed twice on each way, equal in every table:"
        f" {there:.1f} s to PostgreSQL, {back:.1f} s back\n"
    )


if __name__ == "__main__":
    main()
