"""Loads everything that a gateway or a command needs. The fork server imports this module before it
forks processes, so that the forked processes start quickly."""

import gc
import sys
import tempfile
from contextlib import closing
from importlib import import_module
from pathlib import Path

import anyio

from hermes.app.builtins import all_plugins
from hermes.core.models.registry import ModelRegistry
from hermes.entry.cli.main import SUBCOMMANDS
from hermes.settings import load
from hermes.state.sqlite.migration import prepare
from hermes.state.sqlite.schema_check import missing_part
from hermes.testing import crash_checks

__all__ = ["crash_checks"]
"""Importing `crash_checks` also loads the other modules of the crash harness, which each forked
process needs."""


def _use_once(home: Path) -> None:
    """Uses the parts that are loaded or computed only at their first use, so that they are ready in
    the forked gateways."""
    anyio.run(anyio.sleep, 0, backend_options={"use_uvloop": sys.platform != "win32"})
    ModelRegistry.of(all_plugins().models())
    load(home, {})
    with closing(prepare(home / "store.db")) as connection:
        missing_part(connection)


for command in SUBCOMMANDS.values():
    import_module(command.place.partition(":")[0])
with tempfile.TemporaryDirectory(prefix="hermes-") as folder:
    _use_once(Path(folder))
# The garbage collector writes to the objects that it checks. In a forked gateway, each write would
# copy a page of the memory that the processes share. Frozen objects are not checked.
gc.freeze()
