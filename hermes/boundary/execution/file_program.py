"""Builds the program that reads and writes files on another machine, where only Python is
installed."""

import inspect
import json
from functools import cache

from hermes.boundary import scan, workspace
from hermes.boundary.execution import remote_files
from hermes.types.execution import LARGEST_FILE

_TYPES = f"""
LARGEST_FILE = {LARGEST_FILE}
class FileInfo:
    def __init__(self, **fields):
        vars(self).update(fields)
"""
_ERRORS = "class ToolFailed(Exception): pass"
# Type annotations are not evaluated. So the modules also run if the other machine has an older
# version of Python, which does not know some of the types.
LOADER = """
import __future__, json, sys, types
flag = __future__.annotations.compiler_flag
for name, text in json.loads(sys.stdin.buffer.readline()):
    sys.modules[name] = module = types.ModuleType(name)
    vars(sys.modules.get(name.rpartition(".")[0], module))[name.rpartition(".")[2]] = module
    exec(compile(text, name, "exec", flag, True), vars(module))
module.main()
"""
"""The code that loads the modules from stdin and calls `main` of the last module."""


@cache
def file_program() -> bytes:
    """Returns the line that `LOADER` reads: the sources of the modules, as JSON."""
    modules = [
        ("hermes.types", ""),
        ("hermes.types.errors", _ERRORS),
        ("hermes.types.execution", _TYPES),
        ("hermes.boundary", ""),
        *((one.__name__, inspect.getsource(one)) for one in (scan, workspace, remote_files)),
    ]
    return json.dumps(modules).encode() + b"\n"
