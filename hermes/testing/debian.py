"""Installs packages of Debian for tests that need a program of the system."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hermes.types.errors import Disconnected

SYSTEM_PROGRAMS = "/usr/sbin:/sbin"
DEBIAN_SECONDS = 300.0


def installed_program(program: str, *packages: str) -> Path:
    """Returns the path of the program. Installs the packages if the program is missing and this
    process runs as root. Raises Disconnected if the program is still missing."""
    path = os.pathsep.join((os.defpath, SYSTEM_PROGRAMS))
    lock = Path(tempfile.gettempdir()) / "hermes-debian.lock"
    # Two test processes must not install packages at the same time.
    with contextlib.suppress(PermissionError), lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if shutil.which(program, path=path) is None:
            _install(packages)
    found = shutil.which(program, path=path)
    if found is None:
        raise Disconnected(f"{program} is not installed: install Debian's {' and '.join(packages)}")
    return Path(found)


def _install(packages: tuple[str, ...]) -> None:
    installer = shutil.which("apt-get")
    if os.geteuid() != 0 or installer is None:
        return
    install = [installer, "install", "-qq", "-y", "--no-install-recommends", *packages]
    environ = {
        "PATH": f"{os.defpath}:/usr/local/sbin:/usr/sbin:/sbin",
        "DEBIAN_FRONTEND": "noninteractive",
        # The packages must not start services of this machine.
        "SYSTEMD_OFFLINE": "1",
    }
    # The first command fails if the package lists of the machine are missing or old. Then the lists
    # are updated, and the packages are installed.
    for command in (install, [installer, "update", "-qq"], install):
        done = subprocess.run(  # noqa: S603
            command, env=environ, capture_output=True, timeout=DEBIAN_SECONDS, check=False
        )
        if command is install and done.returncode == 0:
            return
    reason = done.stderr.decode("utf-8", "replace").strip()[-500:]
    raise Disconnected(f"{' '.join(packages)} could not be installed: {reason}")
