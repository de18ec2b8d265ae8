"""Loads everything that a gateway needs. The fork server of the crash harness imports this module
once, so that the gateways that it forks start at once."""

import gc
import sys

import anyio

from hermes.app.builtins import all_plugins
from hermes.core.models.registry import ModelRegistry
from hermes.testing import crash_checks

__all__ = ["crash_checks"]
"""This module imports the other modules of the harness. Each forked process runs the main module of
the harness again, and needs them all."""

# The event loop, the plugins and the table of models are loaded at their first use.
anyio.run(anyio.sleep, 0, backend_options={"use_uvloop": sys.platform != "win32"})
ModelRegistry.of(all_plugins().models())
# The garbage collector of a gateway would copy the memory that it shares with the fork server.
gc.freeze()
