"""Gives a command a private view of a folder. Other processes can't replace the files in this
view."""

import hashlib
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from hermes.boundary.execution.command_place import VisibleFolder

_TRIAL_SECONDS = 10.0


def overlay_arguments(folder: Path, shown: Path, work: Path) -> tuple[str, ...]:
    """Returns the options of bubblewrap that show the folder at the path `shown` through an
    overlay. What a command writes is stored in `folder`. `work` is the folder for the internal
    files of the overlay."""
    lower, upper = ("--overlay-src", str(work / "empty")), ("--overlay", str(folder))
    return (*lower, *upper, str(work / "work"), str(shown))


def mount_options(folder: Path, work: Path) -> str:
    """Returns the options with which a container engine mounts the overlay."""
    return f"lowerdir={work / 'empty'},upperdir={folder},workdir={work / 'work'}"


def work_folders(folders: Iterable[VisibleFolder], root: Path) -> dict[VisibleFolder, Path]:
    """Creates the work folder of each overlay in `root`. Leaves out the folders in which another
    file system is mounted, because an overlay would hide the files of that file system."""
    found: dict[VisibleFolder, Path] = {}
    for folder in folders:
        work = root / hashlib.sha256(os.fsencode(folder.real)).hexdigest()[:16]
        if not _contains_mounts(folder.real):
            for made in (work / "empty", work / "work"):
                made.mkdir(mode=0o700, parents=True, exist_ok=True)
            found[folder] = work
    return found


def overlay_works(program: str, folder: Path, work: Path) -> bool:
    """Returns whether bubblewrap can make the overlay. An overlay needs Linux 5.11. The work folder
    must be outside of `folder`, and on the same file system."""
    view = ("--unshare-user", "--dev-bind", "/", "/", *overlay_arguments(folder, folder, work))
    done = _run(program, *view, "--", "/bin/sh", "-c", "exit 0")
    return done is not None and done.returncode == 0


def makes_overlays(program: str) -> bool:
    """Returns whether bubblewrap is new enough to make overlays."""
    done = _run(program, "--help")
    return done is not None and b"--overlay " in done.stdout


def _contains_mounts(folder: Path) -> bool:
    with Path("/proc/self/mountinfo").open("rb") as lines:
        points = [line.split()[4].decode("unicode_escape").encode("latin-1") for line in lines]
    inside = os.fsencode(folder).rstrip(b"/") + b"/"
    return any(point.startswith(inside) for point in points)


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[bytes] | None:
    """Runs bubblewrap. Returns None if it can't be started."""
    try:
        return subprocess.run(  # noqa: S603  # the arguments are ours
            [program, *arguments], capture_output=True, timeout=_TRIAL_SECONDS, check=False, env={}
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
