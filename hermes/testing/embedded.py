"""The embedded model's real file, downloaded once for all test runs of this machine."""

from pathlib import Path

import anyio

from hermes.core.models.download import fetch
from hermes.settings import ENVIRON

FOLDER = Path("~/.cache/hermes-tests/models")


def embedded_file() -> Path:
    """Where the file is; Disconnected when it is not here and can't be had."""
    return anyio.run(fetch, FOLDER.expanduser(), lambda done, total: None, ENVIRON)
