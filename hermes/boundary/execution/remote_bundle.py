"""Packs the modules that run on a remote machine, and builds the command lines that install and run
them there.

The remote machine needs Python 3.11 and nothing else.
"""

import hashlib
import io
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from msgspec.structs import fields

from hermes.boundary import scan, workspace
from hermes.boundary.execution import (
    command_place,
    output_files,
    process_tree,
    remote_agent,
    remote_command,
)
from hermes.types import errors
from hermes.types.execution import LARGEST_FILE, CommandPlace, FileInfo, Script

MISSING = b"missing"
"""The output of the command line that `agent_arguments` returns, if the modules are not installed
on the machine."""
REMOTE_PYTHON = "python3"
_MODULES = (
    command_place,
    errors,
    output_files,
    process_tree,
    remote_agent,
    remote_command,
    scan,
    workspace,
)
_PACKAGES = ("hermes", "hermes/types", "hermes/boundary", "hermes/boundary/execution")
_FOLDER = "import os, sys; folder = os.path.expanduser('~/.cache/hermes/{}'); "
_VALUE = b"""
class Value:
    def __init__(self, **fields):
        self.__dict__.update(fields)
"""
_RUN = (
    "os.path.isdir(folder)"
    " or (sys.stdin.buffer.read(), os.write(1, b'missing'), sys.exit());"
    " sys.path.append(folder);"
    " from hermes.boundary.execution.remote_agent import main; main()"
)
_INSTALL = (
    "import contextlib, io, tempfile, zipfile;"
    " os.makedirs(os.path.dirname(folder), exist_ok=True);"
    " fresh = tempfile.mkdtemp(dir=os.path.dirname(folder));"
    " zipfile.ZipFile(io.BytesIO(sys.stdin.buffer.read())).extractall(fresh);"
    " os.path.isdir(folder) or os.rename(fresh, folder)"
)


@cache
def agent_bundle() -> bytes:
    """Returns a zip archive with the modules that the other machine needs."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name in _PACKAGES:
            _add(bundle, f"{name}/__init__.py", b"")
        for module in _MODULES:
            _add(bundle, f"{module.__name__.replace('.', '/')}.py", _source(module))
        _add(bundle, "hermes/types/execution.py", _types().encode())
        _add(bundle, "hermes/types/value.py", _VALUE)
    return archive.getvalue()


def agent_arguments() -> Sequence[str]:
    """Returns the command line that answers one request from stdin."""
    return (REMOTE_PYTHON, "-I", "-S", "-c", _FOLDER.format(agent_folder()) + _RUN)


def install_arguments() -> Sequence[str]:
    """Returns the command line that installs the archive from stdin."""
    return (REMOTE_PYTHON, "-I", "-S", "-c", _FOLDER.format(agent_folder()) + _INSTALL)


def _types() -> str:
    """Returns the source of a module that replaces `hermes.types.execution` on the remote machine.
    The original module needs msgspec, which is not installed there."""
    lines = ["from collections import namedtuple", f"LARGEST_FILE = {LARGEST_FILE}"]
    for one in (CommandPlace, FileInfo, Script):
        names = [field.name for field in fields(one)]
        lines.append(f"{one.__name__} = namedtuple({one.__name__!r}, {names!r})")
    return "\n".join(lines)


@cache
def agent_folder() -> str:
    """Returns the name of the folder of the modules on the remote machine."""
    # The name contains a hash of the modules, so each version of Hermes uses a folder of its own.
    return f"agent-{hashlib.sha256(agent_bundle()).hexdigest()[:16]}"


def _add(bundle: zipfile.ZipFile, name: str, data: bytes) -> None:
    # Each file gets the same fixed time, so that the same modules always give the same archive.
    bundle.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def _source(module: ModuleType) -> bytes:
    assert module.__file__
    return Path(module.__file__).read_bytes()
