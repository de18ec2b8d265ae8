"""Keeps other users of the machine from reading the files of a home."""

import logging
import os
import stat
from pathlib import Path
from shlex import quote

from hermes.state.paths import Home
from hermes.types.checks import Check
from hermes.types.errors import ConfigError

log = logging.getLogger(__name__)

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def protect(home: Home) -> None:
    """Restricts the home folder, its `.env` file and its API key file to their owner, and logs a
    warning for each change.

    Raises ConfigError if other users can read one of these files and this process is not allowed to
    change the permissions of the file.
    """
    if not home.root.is_dir():
        # The folder is missing, or the path names a file, which is no home and stays unchanged.
        return
    for path in (home.root, home.dotenv, home.api_key):
        restrict_to_owner(path)


def restrict_to_owner(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError:
        # A file that is missing or can't be read is not used, so it needs no protection.
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or not mode & OTHERS:
        return
    wanted = stat.S_IMODE(mode) & ~OTHERS
    try:
        path.chmod(wanted)
        ignored = path.stat().st_mode & OTHERS
    except OSError as error:
        raise ConfigError(
            f"other users can read {path}, and its permissions can't be changed"
            f" ({error.strerror}): its owner has to run `chmod {wanted:o} {quote(str(path))}`"
        ) from error
    if ignored:
        raise ConfigError(
            f"other users can read {path}, and its disk ignores permissions: use a folder on"
            " another disk"
        )
    log.warning("other users could read %s: its permissions are now %o", path, wanted)


def check_permissions(home: Home) -> list[Check]:
    """Checks who can read the home and its secret files, and changes nothing."""
    if not home.root.exists():
        text = f"{home.root} does not exist yet: the first start creates it"
        return [Check(name="permissions", level="ok", text=text)]
    if not os.access(home.root, os.R_OK | os.W_OK | os.X_OK):
        text = f"{home.root} can't be read and written"
        hint = f"run `sudo chown -R $USER {quote(str(home.root))}`, or set HERMES_HOME"
        return [Check(name="permissions", level="error", text=text, hint=hint)]
    paths = (home.root, home.dotenv, home.api_key, home.store)
    readable = [path for path in paths if path.exists() and path.stat().st_mode & OTHERS]
    if not readable:
        text = f"only you can read {home.root} and its secrets"
        return [Check(name="permissions", level="ok", text=text)]
    return [
        Check(
            name="permissions",
            level="warning",
            text=f"other users can read {path}",
            hint=f"run `chmod go= {quote(str(path))}`; the next start of Hermes does the same",
        )
        for path in readable
    ]
