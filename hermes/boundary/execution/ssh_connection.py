"""The connection to another machine, through the program `ssh`. All foreground commands and file
operations share this connection."""

import contextlib
import shlex
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import anyio
from anyio.abc import Process

from hermes.boundary.execution.handles import CALL_MARK
from hermes.boundary.execution.ssh_file_server import FileServers
from hermes.types.errors import ToolFailed
from hermes.types.execution_clients import ClientOptions

SSH_NAME = "ssh"
SSH_CONNECT_SECONDS = 20
ALIVE_SECONDS = 15
"""Seconds without data from the other machine after which `ssh` checks the connection. After three
checks without an answer, `ssh` closes the connection."""
SSH_ADVICE = (
    "Check terminal.ssh_host, ssh_user, ssh_port and ssh_key_file, and connect once by hand with"
    " `{}`, so that the key of the machine is known. Commands never run on this machine instead."
)
_READY = b"ready\n"
# The shell becomes a subreaper, so that a process that loses its parent stays a descendant of the
# shell.
_SUBREAPER = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0);"
    " os.execvp('sh', ['sh', *sys.argv[1:]])"
)


class SshConnection:
    """Implements `Machine`. The connection ends when this process ends."""

    shared = True
    files = ("", 0)

    def __init__(self, options: ClientOptions) -> None:
        self._ssh = options.ssh
        self.environment: Mapping[str, str] = options.environment
        self._program = shutil.which("ssh", path=options.environment.get("PATH"))
        self._master: Process | None = None
        self._folder: Path | None = None
        self._opening = anyio.Lock()
        self._used_at = 0.0
        self.file_servers = FileServers()

    @property
    def target(self) -> str:
        """The machine and the account, as they are shown to people."""
        account = f"{self._ssh.user}@{self._ssh.host}" if self._ssh.user else self._ssh.host
        return account if self._ssh.port == 22 else f"{account}:{self._ssh.port}"

    @property
    def name(self) -> str:
        return f"{SSH_NAME}:{self.target}"

    @property
    def advice(self) -> str:
        return SSH_ADVICE.format(shlex.join(["ssh", *self._options()[4:], self._ssh.host]))

    async def prepare(self) -> None:
        """Connects, if there is no connection."""
        self._used_at = time.monotonic()
        if self._master and self._master.returncode is None:
            return
        async with self._opening:
            if not (self._master and self._master.returncode is None):
                await self.aclose()
                await self._connect()

    def client(self, mark: str, *arguments: str, lasting: bool = False) -> tuple[str, ...]:
        # A client that outlives this process needs its own connection, because the shared
        # connection ends with this process.
        path = str(self._folder / "s") if self._folder and not lasting else "none"
        marked = ("exec", "env", f"{CALL_MARK}={mark}")
        remote = shlex.join([*marked, "python3", "-I", "-S", "-c", _SUBREAPER, *arguments])
        return (self._found(), "-S", path, *self._options(), "-T", self._ssh.host, remote)

    def python(self, code: str) -> tuple[str, ...]:
        """Returns the command line that runs Python code on the machine."""
        assert self._folder
        remote = shlex.join(["exec", "python3", "-I", "-S", "-c", code])
        path = str(self._folder / "s")
        return (self._found(), "-S", path, *self._options(), "-T", self._ssh.host, remote)

    def watch(self) -> None:
        """Returns None, because Hermes sets no limits on the machine."""

    def terminal(self, folder: str) -> tuple[str, ...]:
        remote = f'cd {shlex.quote(folder)} && exec "$SHELL" -i'
        return (self._found(), *self._options(), "-t", self._ssh.host, remote)

    def failure(self, said: str) -> ToolFailed:
        reason = said.strip()[-500:] or "it was closed"
        return ToolFailed(
            f"The connection to {self.target} does not work: {reason}. A command that was running"
            f" there is ended. {self.advice}"
        )

    async def clear(self) -> None:
        """Closes the connection. The supervisors on the machine then end their commands."""
        await self.aclose()

    async def close_idle(self, seconds: float) -> bool:
        """Closes the connection if it was not used for this number of seconds. Returns whether it
        was closed."""
        idle = self._master is not None and time.monotonic() - self._used_at >= seconds
        if idle:
            await self.aclose()
        return idle

    async def aclose(self) -> None:
        """Closes the connection. Background processes have connections of their own."""
        master, self._master = self._master, None
        await self.file_servers.aclose()
        if master:
            with contextlib.suppress(ProcessLookupError):
                master.terminate()
            with anyio.CancelScope(shield=True):
                await master.aclose()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    async def _connect(self) -> None:
        # The path of a socket has at most about 100 characters, and a path in the home can be
        # longer.
        self._folder = Path(tempfile.mkdtemp(prefix="hermes-ssh-"))
        # `cat` ends when this process ends, and then `ssh` ends, too.
        remote = "echo ready; exec cat >/dev/null"
        path = str(self._folder / "s")
        line = [self._found(), "-M", "-S", path, *self._options(), "-T", self._ssh.host, remote]
        said = b""
        with anyio.CancelScope(shield=True):
            master = await anyio.open_process(line, env=self.environment, start_new_session=True)
        assert master.stdout
        assert master.stderr
        try:
            with anyio.move_on_after(SSH_CONNECT_SECONDS), contextlib.suppress(anyio.EndOfStream):
                while not said.endswith(_READY):
                    said += await master.stdout.receive()
            if said.endswith(_READY):
                self._master = master
                return
            with anyio.move_on_after(1), contextlib.suppress(anyio.EndOfStream):
                said = await master.stderr.receive()
            raise self.failure(said.decode(errors="replace"))
        finally:
            if self._master is not master:
                with contextlib.suppress(ProcessLookupError):
                    master.kill()
                with anyio.CancelScope(shield=True):
                    await master.aclose()

    def _options(self) -> tuple[str, ...]:
        ssh = self._ssh
        return (
            *("-o", "BatchMode=yes", "-o", f"ConnectTimeout={SSH_CONNECT_SECONDS}"),
            *("-o", f"ServerAliveInterval={ALIVE_SECONDS}", "-o", "LogLevel=ERROR"),
            *("-o", "ForwardAgent=no", "-o", "ClearAllForwardings=yes"),
            *(argument for one in ssh.options for argument in ("-o", one)),
            *(("-p", str(ssh.port)) if ssh.port != 22 else ()),
            *(("-l", ssh.user) if ssh.user else ()),
            *(("-i", ssh.key) if ssh.key else ()),
        )

    def _found(self) -> str:
        if self._program is None:
            raise ToolFailed("Commands can't run, because `ssh` is not installed: install it.")
        if not self._ssh.host or self._ssh.host.startswith("-"):
            raise ToolFailed(
                "Commands can't run, because terminal.ssh_host is empty: set it to the name of a"
                " machine."
            )
        return self._program
