"""pgbouncer in transaction mode in front of a PostgreSQL server, from Debian's package."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from hermes.testing.debian import installed_program
from hermes.testing.postgres import (
    SERVER_SECONDS,
    SHORT,
    SUPERUSER,
    PostgresProcess,
    end_with_parent,
    server_account,
)

PROGRAM = "pgbouncer"
PORT = 6432
"""The port number in the file name of the UNIX socket. pgbouncer listens on no TCP port."""
SERVER_CONNECTIONS = 3
"""Number of connections from pgbouncer to the server. A gateway has more connections to pgbouncer,
so its transactions run on different connections to the server."""
_SETTINGS = f"""
[databases]
* = host={{server}} user={SUPERUSER}

[pgbouncer]
pool_mode = transaction
default_pool_size = {SERVER_CONNECTIONS}
auth_type = any
listen_addr =
listen_port = {PORT}
unix_socket_dir = {{folder}}
server_login_retry = 1
"""


def installed_pgbouncer() -> Path:
    """Returns the path of the program. Raises Disconnected if it can't be installed."""
    return installed_program(PROGRAM, PROGRAM)


class PgbouncerProcess:
    """A pooler that can be stopped and started again. The pooler ends when the process that created
    it ends."""

    def __init__(self, program: Path, postgres: PostgresProcess) -> None:
        self._program = program
        self._account = server_account()
        self._process: subprocess.Popen[bytes] | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="hermes-pgb-", dir=SHORT))
        settings = self.folder / "pgbouncer.ini"
        settings.write_text(_SETTINGS.format(server=postgres.folder, folder=self.folder), "utf-8")
        if self._account:
            for path in (self.folder, settings):
                os.chown(path, self._account["user"], self._account["group"])

    def url(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}@/{database}?host={self.folder}&port={PORT}"

    def start(self) -> None:
        """Starts the pooler and waits until it accepts connections."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [str(self._program), str(self.folder / "pgbouncer.ini")],
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,  # noqa: PLW1509  # no thread of ours holds a lock
                **self._account,
            )
        deadline = time.monotonic() + SERVER_SECONDS
        while True:
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url(SUPERUSER)).close()
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                logged = (self.folder / "log").read_text("utf-8", "replace")[-2000:]
                raise AssertionError(f"pgbouncer did not start: {logged}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stops the pooler with this signal. SIGTERM and SIGKILL cut all connections at once."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(SERVER_SECONDS)
            self._process = None

    def remove(self) -> None:
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def running_pgbouncer(program: Path, postgres: PostgresProcess) -> Iterator[PgbouncerProcess]:
    """Runs a pooler in front of the server until the block ends."""
    pooler = PgbouncerProcess(program, postgres)
    try:
        pooler.start()
        yield pooler
    finally:
        pooler.remove()
