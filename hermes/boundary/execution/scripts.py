"""Builds the command lines of the processes that supervise commands."""

import sys
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).parents[3]
"""The folder that contains the package."""
# The options `-I` and `-S` leave out the module `site` and the user's settings, so that Python
# starts in half the time. The folder of our package is searched last, so that none of our modules
# replaces a module of Python.
_RUN = "import sys; sys.path.append(sys.argv.pop(1)); from {} import main; main()"


def script(module: ModuleType, *arguments: str) -> list[str]:
    """Returns the command line that runs the module's `main` with the standard library alone."""
    run = _RUN.format(module.__name__)
    return [sys.executable, "-I", "-S", "-c", run, str(_ROOT), *arguments]
