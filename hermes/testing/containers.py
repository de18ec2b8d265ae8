"""Containers for tests. Podman comes from Debian's packages, and the image is built from files of
this machine."""

import contextlib
import hashlib
import io
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from hermes.boundary.execution.background import PROCESS_MARK
from hermes.boundary.execution.docker import DockerBackend
from hermes.boundary.execution.environment import child_environment
from hermes.boundary.execution.process import end_marked
from hermes.testing.debian import installed_program
from hermes.types.errors import Disconnected
from hermes.types.execution import BackendOptions, CommandLimits, Mount
from hermes.types.execution_clients import ClientOptions, ContainerOptions
from hermes.types.identity import new_id

PROGRAMS = (
    *("bash", "sh", "cat", "chmod", "date", "dd", "env", "grep", "head", "id", "ls", "ln", "mkdir"),
    *("mv", "rm", "setsid", "sleep", "touch", "tr", "wc"),
)
BASE_PYTHON = Path(sys.base_prefix)
FOLDERS = ("dev", "etc", "home", "proc", "run", "sys", "tmp", "usr", "var", "var/tmp")
LIMITS = CommandLimits(processes=100, memory=300_000_000, workspace_bytes=50_000_000)
WORKSPACE_INSIDE = "/srv/project"
_PROBE_SECONDS = 60.0


class ContainerStage:
    """A home whose sandboxes are containers. All tests that use this home share one container,
    because a container starts slowly."""

    def __init__(self, engine: Path, image: str, folder: Path) -> None:
        self.engine = engine
        self.image = image
        self.sandboxes = folder / "sandboxes"
        self.secret = new_id()

    def options(self, folder: Path, idle_seconds: float = 300.0) -> BackendOptions:
        """Returns options of a backend that keeps the records of processes in this folder."""
        containers = ContainerOptions(
            program=str(self.engine), image=self.image, idle_seconds=idle_seconds
        )
        return BackendOptions(
            processes=folder / "processes",
            environment={"LANG": "C"},
            secrets={"GITHUB_TOKEN": self.secret},
            sandboxes=self.sandboxes,
            own_workspaces=True,
            mounts=(Mount(path=str(BASE_PYTHON)),),
            limits=LIMITS,
            clients=ClientOptions(environment=child_environment({}), containers=containers),
        )

    @contextlib.contextmanager
    def empty(self, folder: Path) -> Iterator[None]:
        """After the block, ends the background processes with records in this folder, and deletes
        the files of all sandboxes."""
        try:
            yield
        finally:
            for record in (folder / "processes").glob("*"):
                end_marked(f"{PROCESS_MARK}={record.name}")
            for workspace in self.sandboxes.glob("docker/*/workspace"):
                for path in workspace.iterdir():
                    if path.is_dir() and not path.is_symlink():
                        shutil.rmtree(path)
                    else:
                        path.unlink()

    def backend(self, folder: Path) -> DockerBackend:
        return DockerBackend(self.options(folder))

    def names(self) -> list[str]:
        """Returns the names of the containers that run."""
        label = f"label=hermes.home={(self.sandboxes / 'docker').resolve()}"
        return _call(self.engine, "ps", "--filter", label, "--format", "{{.Names}}").split()

    def volumes(self) -> list[str]:
        """Returns the volumes of the engine that no container uses."""
        found = _call(self.engine, "volume", "ls", "--filter", "dangling=true", "--quiet")
        return found.split()

    def close(self) -> None:
        """Removes all containers."""
        for name in self.names():
            _call(self.engine, "rm", "--force", name)


def container_stage(folder: Path) -> ContainerStage:
    """Returns a stage in this folder. Raises Disconnected if containers can't run here."""
    engine = installed_program("podman", "podman", "runc")
    return ContainerStage(engine, _image(engine), folder)


def _image(engine: Path) -> str:
    """Returns the name of the test image, and makes it if it is missing."""
    content = Path(__file__).read_bytes() + sys.version.encode()
    name = f"localhost/hermes-test:{hashlib.sha256(content).hexdigest()[:12]}"
    done = subprocess.run([engine, "image", "inspect", name], capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        _call(engine, "import", "-", name, given=_root_files())
    return name


def _call(engine: Path, *arguments: str, given: bytes | None = None) -> str:
    done = subprocess.run(  # noqa: S603
        [engine, *arguments], input=given, capture_output=True, timeout=_PROBE_SECONDS, check=False
    )
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()[-500:]
        raise Disconnected(f"podman {arguments[0]} does not work here: {reason}")
    return done.stdout.decode()


def _root_files() -> bytes:
    """Returns a small root file system as a tar archive: a few programs, and the libraries that
    they and Python need."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if "tmp" in name else 0o755
            tar.addfile(folder)
        programs = {f"bin/{name}": Path(shutil.which(name) or "").resolve() for name in PROGRAMS}
        modules = Path(sysconfig.get_path("stdlib"), "lib-dynload").glob("*.so")
        needed = _libraries([*programs.values(), Path(sys.executable).resolve(), *modules])
        for inside, path in {**programs, **{str(one)[1:]: one for one in needed}}.items():
            tar.add(path.resolve(), inside)
        users = b"root:x:0:0::/:/bin/sh\n"
        passwd = tarfile.TarInfo("etc/passwd")
        passwd.size, passwd.mode = len(users), 0o644
        tar.addfile(passwd, io.BytesIO(users))
    return archive.getvalue()


def _libraries(files: Sequence[Path]) -> set[Path]:
    """Returns the shared libraries that the files need, outside of Python's own folder."""
    done = subprocess.run(  # noqa: S603
        ["/usr/bin/ldd", *files], capture_output=True, check=False, text=True
    )
    words = (word for line in done.stdout.splitlines() if "(0x" in line for word in line.split())
    found = {Path(word) for word in words if word.startswith("/")}
    return {one for one in found if not one.is_relative_to(BASE_PYTHON)}
