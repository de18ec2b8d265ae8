"""The paths of all files under a home folder, and functions that write files safely."""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from hermes.types.errors import ConfigError
from hermes.types.value import Value

STORE_NAME = "hermes.db"
"""The file name of the database."""


class Home(Value):
    """The home folder of one agent, which contains the agent's settings and data. Only the user who
    owns the folder can read it."""

    root: Path

    @property
    def config(self) -> Path:
        return self.root / "config.yaml"

    @property
    def dotenv(self) -> Path:
        return self.root / ".env"

    @property
    def store(self) -> Path:
        return self.root / STORE_NAME

    @property
    def former_store(self) -> Path:
        """The database file of earlier versions. Another program, Hermes Agent, uses the same file
        name, so the file may belong to that program."""
        return self.root / "state.db"

    @property
    def soul(self) -> Path:
        return self.root / "SOUL.md"

    @property
    def api_key(self) -> Path:
        """The file with the API key that Hermes generates if none is configured."""
        return self.root / "api_server.key"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """The folder of lock files, which show which processes and gateways of the home run."""
        return self.root / "run"

    @property
    def backups(self) -> Path:
        return self.root / "backups"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def spill(self) -> Path:
        """The folder of tool results that were too long for the model."""
        return self.root / "spill"

    @property
    def media(self) -> Path:
        """The folder of files that came with messages."""
        return self.root / "media"

    @property
    def memories(self) -> Path:
        return self.root / "memories"

    @property
    def todos(self) -> Path:
        return self.root / "todos"

    @property
    def processes(self) -> Path:
        """The folder of the agent's background processes."""
        return self.root / "processes"

    @property
    def sandboxes(self) -> Path:
        """The folder of the sandboxes in which commands run, with a subfolder for each backend."""
        return self.root / "sandboxes"

    @property
    def cache(self) -> Path:
        """The folder of files that can be downloaded or generated again."""
        return self.root / "cache"

    @property
    def profiles(self) -> Path:
        return self.root / "profiles"

    @property
    def context(self) -> Path:
        """The folder with the records of two things: the context files that the agent has written,
        and the context files that the owner has allowed."""
        return self.root / "context"

    def ensure(self) -> None:
        """Creates the missing folders, accessible only to their owner."""
        folders = (self.logs, self.run, self.backups, self.workspace, self.models, self.profiles)
        try:
            for folder in (self.root, *folders):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"the home {str(self.root)!r} can't be created ({error.strerror}):"
                " set HERMES_HOME to a folder that you may write"
            ) from None


def file_name(session: str) -> str:
    """Returns a short file name for the session, because its key may be too long for a file
    name."""
    return hashlib.sha256(session.encode()).hexdigest()[:32]


def create_private_folder(path: Path) -> None:
    """Creates the folder and the missing folders above it. Only their owner can read them."""
    # With `parents=True`, `mkdir` would apply the mode to the last folder only.
    for folder in (*reversed(path.parents), path):
        if not folder.exists():
            folder.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, content: str | bytes) -> None:
    """Replaces the file's content atomically and durably. Only its owner can read the file."""
    data = content.encode() if isinstance(content, str) else content
    # If the path is a symbolic link, the target of the link is written. So the link itself is kept,
    # for example a link to a folder of dotfiles.
    path = path.resolve()
    create_private_folder(path.parent)
    try:
        _replace(path, data)
    except OSError as error:
        # The new error names the path. The original error names the temporary file or, if the disk
        # is full, no file.
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            fresh.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Ensures that new and renamed files in the folder survive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
