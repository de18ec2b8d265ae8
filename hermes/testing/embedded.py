"""The file of the embedded model, downloaded once for all test runs of this machine."""

from pathlib import Path

import anyio

from hermes.core.models.download import fetch
from hermes.settings import ENVIRON

FOLDER = Path("~/.cache/hermes-tests/models")


def embedded_file() -> Path:
    """Returns the path of the model file, and downloads the file first if it is missing. Raises
    Disconnected if the download fails."""
    return anyio.run(fetch, FOLDER.expanduser(), lambda done, total: None, ENVIRON)
