"""The signatures of the parts of Modal's and Daytona's SDK that the backends use.

The SDKs are large, so the tests use fakes of them. The fakes check each call against signatures
that were recorded from the SDKs. After an SDK was changed, compare and record the signatures again:

    pip install modal daytona
    python -m hermes.testing.cloud_signatures          # says whether the record is still right
    python -m hermes.testing.cloud_signatures --write
"""

import importlib
import inspect
import json
import sys
from collections.abc import Iterator
from functools import cache, reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any

SIGNATURES = Path(__file__).with_suffix(".json")
CALLED: dict[str, tuple[str, ...]] = {
    "modal": (
        "App.lookup",
        "Client.from_credentials",
        "Client.hello",
        "Image.from_registry",
        "Sandbox.create",
        "Sandbox.exec",
        "Sandbox.from_name",
        "Sandbox.poll",
        "Sandbox.terminate",
        "Volume.from_name",
        "Volume.objects.delete",
        "Volume.objects.list",
        "container_process.ContainerProcess.wait",
        "io_streams.StreamReader.read",
        "io_streams.StreamWriter.drain",
        "io_streams.StreamWriter.write",
        "io_streams.StreamWriter.write_eof",
    ),
    "daytona": (
        "AsyncDaytona",
        "AsyncDaytona.close",
        "AsyncDaytona.create",
        "AsyncDaytona.get",
        "AsyncDaytona.list",
        "AsyncSandbox.delete",
        "AsyncSandbox.start",
        "AsyncSandbox.stop",
        "AsyncSandbox.wait_for_sandbox_stop",
        "CreateSandboxFromImageParams",
        "DaytonaConfig",
        "ListSandboxesQuery",
        "Resources",
        "_async.filesystem.AsyncFileSystem.upload_file",
        "_async.process.AsyncProcess.exec",
    ),
}
"""The functions and classes of each package that the backends call."""
ERRORS = {"modal": ("exception", "Error"), "daytona": ("common.errors", "DaytonaError")}
"""For each package, the module that contains its errors, and the name of their common base
class."""


def main() -> None:
    current = {package: _described(package) for package in CALLED}
    if "--write" in sys.argv:
        SIGNATURES.write_text(json.dumps(current, indent=1, sort_keys=True) + "\n")
        return
    recorded = json.loads(SIGNATURES.read_text())
    for package, parts in current.items():
        for part, found in parts.items():
            if recorded[package].get(part) != found:
                sys.exit(f"{package}: {part} differs from {SIGNATURES.name}")
    sys.stdout.write("The record is right.\n")


def signature_of(package: str, name: str) -> inspect.Signature:
    """Returns the recorded signature of a function or class."""
    # The record contains the parameters in Python's syntax, so a lambda with these parameters has
    # the recorded signature.
    text = _record()[package]["calls"][name].replace("=", "=None")
    return inspect.signature(eval(f"lambda {text}: None"))  # noqa: S307  # our own record


def errors_of(package: str) -> dict[str, type[Exception]]:
    """Returns error classes with the same names and base classes as the errors of the SDK."""
    bases: dict[str, list[str]] = _record()[package]["errors"]
    made: dict[str, type[Exception]] = {}

    def make(name: str) -> type[Exception]:
        if name not in made:
            above = tuple(make(base) for base in bases[name])
            made[name] = type(name, above or (Exception,), {})
        return made[name]

    return {name: make(name) for name in bases}


def is_async(name: str) -> bool:
    """Returns whether a function of Modal's SDK has an asynchronous form, `.aio`."""
    return name in _record()["modal"]["aio"]


@cache
def _record() -> Any:
    return json.loads(SIGNATURES.read_text())


def _described(package: str) -> dict[str, Any]:
    module = importlib.import_module(package)
    calls = {name: _found(module, name) for name in CALLED[package]}
    return {
        "version": version(package),
        "calls": {name: ", ".join(_parameters(one)) for name, one in calls.items()},
        "aio": [name for name, one in calls.items() if hasattr(one, "aio")],
        "errors": dict(_errors(package)),
    }


def _found(module: Any, name: str) -> Any:
    *parts, _ = name.split(".")
    for count in range(1, len(parts) + 1):
        # A part of the name may be a module that importing the package does not load, so this
        # module is imported here.
        if parts[count - 1].islower() and not hasattr(module, parts[0]):
            importlib.import_module(".".join([module.__name__, *parts[:count]]))
    return reduce(getattr, name.split("."), module)


def _parameters(function: Any) -> Iterator[str]:
    """Yields the parameters in Python's syntax, without types. A parameter with a default value
    ends with `=`."""
    keywords = False
    for one in inspect.signature(function).parameters.values():
        if one.kind is inspect.Parameter.KEYWORD_ONLY and not keywords:
            yield "*"
        keywords |= one.kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL)
        star = "*" * (one.kind is inspect.Parameter.VAR_POSITIONAL)
        star += "**" * (one.kind is inspect.Parameter.VAR_KEYWORD)
        end = "" if one.default is inspect.Parameter.empty else "="
        yield f"{star}{one.name}{end}"


def _errors(package: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the names of the errors and of their bases, bases first."""
    place, root = ERRORS[package]
    module = importlib.import_module(f"{package}.{place}")
    found = [
        one
        for _, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, getattr(module, root))
    ]
    for one in sorted(found, key=lambda error: len(error.__mro__)):
        yield one.__name__, [base.__name__ for base in one.__bases__ if base in found]


if __name__ == "__main__":
    main()
