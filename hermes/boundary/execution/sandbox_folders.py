"""The folders of the sandboxes: each sandbox keeps its workspace, its /tmp and its home on disk."""

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hermes.boundary.execution.visible_files import DEVICES
from hermes.boundary.execution.watchdog import folder_bytes
from hermes.types.execution import SandboxInfo, SandboxScope, Sharing
from hermes.types.identity import AgentId, SessionKey
from hermes.types.value import Value

SANDBOX_RECORD = "sandbox.json"


class SandboxRecord(Value):
    """The owner of a sandbox. The modification time of the record's file is the time of the last
    use."""

    agent: AgentId
    session: str
    person: str = ""
    workspace: str = ""
    """The folder in which the commands work; empty for the workspace of the sandbox."""


class SandboxFolder:
    """The folder of one sandbox. It is created when it is first used."""

    def __init__(
        self, root: Path, scope: SandboxScope, sharing: Sharing, workspace: str = ""
    ) -> None:
        """`workspace` is the folder in which the commands work; empty for the workspace of the
        sandbox."""
        person = scope.person if sharing == "person" else None
        self.id = sandbox_id(scope, sharing)
        self._root = root / self.id
        self._record = SandboxRecord(
            agent=scope.agent,
            session=str(scope.session),
            person=person or "",
            workspace=workspace,
        )

    @property
    def workspace(self) -> Path:
        return self._root / "workspace"

    @property
    def temporary(self) -> Path:
        return self._root / "tmp"

    @property
    def home(self) -> Path:
        return self._root / "home"

    @property
    def approved(self) -> Path:
        """The folder with the copies of approved scripts. Commands can't see it."""
        return self._root / "approved"

    @property
    def overlays(self) -> Path:
        """The folder with the work folders of overlays. Commands can't see it."""
        return self._root / "overlays"

    @property
    def devices(self) -> Path | None:
        """The folder with the devices of the sandbox; None if the sandbox uses the devices of the
        machine."""
        folder = self._root / "dev"
        return folder if folder.is_dir() else None

    def ensure(self) -> None:
        """Creates the folders, and records that the sandbox is used now."""
        for folder in (self.workspace, self.temporary, self.home):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0 and not self.devices:
            _make_devices(self._root / "dev")
        record = self._root / SANDBOX_RECORD
        with contextlib.suppress(FileNotFoundError):
            if msgspec.json.decode(record.read_bytes(), type=SandboxRecord) == self._record:
                record.touch()
                return
        record.write_bytes(msgspec.json.encode(self._record))


def _make_devices(folder: Path) -> None:
    """Creates separate devices for a sandbox. If the gateway runs as root, commands own the devices
    of the machine. Without separate devices, the commands could change the permissions of the
    machine's devices."""
    # This fails if the kernel does not let root create devices, as in many containers, or if the
    # file system has no usable devices.
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=folder.parent) as name:
        for device in (*DEVICES, "tty"):
            made = Path(name, device)
            os.mknod(made, stat.S_IFCHR | 0o666, Path("/dev", device).stat().st_rdev)
            made.chmod(0o666)
        Path(name, "null").read_bytes()
        Path(name).rename(folder)
        Path(name).mkdir()


def sandbox_id(scope: SandboxScope, sharing: Sharing) -> str:
    """Returns the id of the sandbox for a scope (an agent, a session and perhaps a person). Scopes
    with the same id share a sandbox."""
    owner = str(scope.session)
    if sharing == "agent":
        owner = f"agent:{scope.agent}"
    elif sharing == "person" and scope.person is not None:
        owner = f"person:{scope.agent}:{scope.person}"
    return hashlib.sha256(owner.encode(errors="surrogatepass")).hexdigest()[:32]


def known_sandboxes(root: Path) -> Iterator[SandboxInfo]:
    """Yields the sandboxes in the folder, in no particular order."""
    for path in root.glob(f"*/{SANDBOX_RECORD}"):
        # Another process may delete the sandbox meanwhile.
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError):
            record = msgspec.json.decode(path.read_bytes(), type=SandboxRecord)
            yield SandboxInfo(
                id=path.parent.name,
                agent=record.agent,
                session=record.session,
                person=record.person,
                workspace=record.workspace,
                used_at=path.stat().st_mtime,
                bytes=folder_bytes(str(path.parent)),
            )


def delete_sandbox(root: Path, id: str) -> bool:
    """Deletes the files of a sandbox. Returns False if there is no such sandbox."""
    folder = root / id
    if not id.isalnum() or not folder.is_dir():
        return False
    # A command may have created folders whose mode forbids even their owner to write to them.
    for inner in (folder, *folder.rglob("*")):
        if inner.is_dir() and not inner.is_symlink():
            inner.chmod(0o700)
    # The record is deleted first, so that a sandbox whose files are partly deleted is not listed.
    (folder / SANDBOX_RECORD).unlink(missing_ok=True)
    gone = root / f".deleted-{id}-{time.time_ns()}"
    folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
    return True


def delete_session_sandbox(root: Path, session: SessionKey) -> None:
    """Deletes the sandbox that belongs to this session alone. `root` contains a folder for each
    backend, with the sandboxes of the backend."""
    scope = SandboxScope(agent=session.agent, session=session, workspace="")
    for folder in root.glob("*"):
        delete_sandbox(folder, sandbox_id(scope, "session"))
