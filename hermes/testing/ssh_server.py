"""An SSH server on this machine for tests, from Debian's package."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from hermes.boundary.execution.background import PROCESS_MARK
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.process import end_marked
from hermes.boundary.execution.ssh import SshBackend
from hermes.testing.debian import installed_program
from hermes.types.errors import Disconnected
from hermes.types.execution import BackendOptions
from hermes.types.execution_clients import ClientOptions, SshOptions
from hermes.types.identity import new_id

SERVER_START_SECONDS = 10.0
_PRIVILEGE_FOLDER = Path("/run/sshd")
"""An empty folder that the server needs if it runs as root. Debian's service creates it, too."""
_SERVER_SETTINGS = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/client.pub
PidFile none
PasswordAuthentication no
StrictModes no
UsePAM no
LogLevel ERROR
MaxSessions 50
# Without SHLVL, bash would read ~/.bashrc, which may be slow and may choose another Python.
SetEnv SHLVL=2
MaxStartups 50
"""


class SshServer:
    """A running SSH server. The current user can log in with a key."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("host", "client"):
            subprocess.run(  # noqa: S603
                ["/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name],
                check=True,
            )
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        settings = _SERVER_SETTINGS.format(port=self.port, folder=folder)
        (folder / "sshd_config").write_text(settings)
        key = (folder / "host.pub").read_text()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key}")
        self.workspaces = folder / "work"
        self.secret = new_id()

    def start(self) -> None:
        if os.geteuid() == 0:
            _PRIVILEGE_FOLDER.mkdir(mode=0o755, exist_ok=True)
        self._process = subprocess.Popen(  # noqa: S603
            [self._program, "-D", "-e", "-f", self._folder / "sshd_config"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        deadline = time.monotonic() + SERVER_START_SECONDS
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            time.sleep(0.02)
        raise Disconnected("sshd does not start")

    def drop(self) -> None:
        """Ends all connections."""
        assert self._process
        for one in psutil.Process(self._process.pid).children():
            one.kill()

    def stop(self) -> None:
        """Ends the server. Its connections continue."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def options(self, folder: Path) -> BackendOptions:
        """Returns options of a backend that keeps its records in this folder."""
        ssh = SshOptions(
            host="127.0.0.1",
            user=pwd.getpwuid(os.geteuid()).pw_name,
            port=self.port,
            key=str(self._folder / "client"),
            folder=str(self.workspaces),
            options=(f"UserKnownHostsFile={self._folder / 'known_hosts'}",),
        )
        return BackendOptions(
            processes=folder / "processes",
            environment={"LANG": "C"},
            secrets={"GITHUB_TOKEN": self.secret},
            sandboxes=folder / "sandboxes",
            clients=ClientOptions(environment=child_environment({}), ssh=ssh),
        )

    def backend(self, folder: Path) -> SshBackend:
        return SshBackend(self.options(folder))

    @contextlib.contextmanager
    def empty(self, folder: Path) -> Iterator[None]:
        """After the block, ends the background processes with records in this folder, and deletes
        the files of all sandboxes."""
        try:
            yield
        finally:
            for record in (folder / "processes").glob("*"):
                end_marked(f"{PROCESS_MARK}={record.name}")
            shutil.rmtree(self.workspaces, ignore_errors=True)


def ssh_server(folder: Path) -> SshServer:
    """Returns a server that keeps its files in this folder. Raises Disconnected if there is no
    server program here."""
    return SshServer(installed_program("sshd", "openssh-server", "openssh-client"), folder)
