"""Loads everything that a gateway needs. The fork server of the crash harness imports this module
once, so that the gateways that it forks start at once."""

import gc
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import anyio

from hermes.app.builtins import all_plugins
from hermes.core.models.registry import ModelRegistry
from hermes.settings import load
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.schema_check import missing_part
from hermes.testing import crash_checks

__all__ = ["crash_checks"]
"""This module imports the other modules of the harness. Each forked process runs the main module of
the harness again, and needs them all."""


def _use_once(home: Path) -> None:
    """Uses everything that is loaded or computed at its first use."""
    anyio.run(anyio.sleep, 0, backend_options={"use_uvloop": sys.platform != "win32"})
    ModelRegistry.of(all_plugins().models())
    load(home, {})
    with closing(prepare(home / "store.db")) as connection:
        missing_part(connection)


with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
    _use_once(Path(folder))
# The garbage collector of a gateway would copy the memory that it shares with the fork server.
gc.freeze()
