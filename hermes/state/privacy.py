"""Keeps other users of the machine from reading the files of a home."""

import logging
import stat
from pathlib import Path
from shlex import quote

from hermes.state.paths import Home
from hermes.types.errors import ConfigError

log = logging.getLogger(__name__)

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def protect(home: Home) -> None:
    """Restricts the home folder, its `.env` file and its API key file to their owner, and logs a
    warning for each change.

    Raises ConfigError if other users can read one of these files and this process may not change
    its permissions.
    """
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
