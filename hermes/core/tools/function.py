"""Makes a tool from a Python function."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, get_type_hints

import anyio
import anyio.to_thread
import msgspec
from anyio.lowlevel import RunVar

from hermes.types.errors import ConfigError
from hermes.types.tools import Tool, ToolContext

TOOL_THREADS = 16
"""Maximum number of functions without `async` that run at the same time. They run in threads that
are reserved for tools."""
_threads: RunVar[anyio.CapacityLimiter] = RunVar("threads of tools")


def tool(
    function: Callable[..., str | Awaitable[str]], *, read_only: bool = False
) -> Tool[msgspec.Struct]:
    """Returns a tool with the function's name, docstring, arguments and types.

    A function without `async` runs in a thread. Set `read_only` if the function changes nothing.
    Its calls can then run concurrently, and can be repeated after a crash.
    """
    name = function.__name__
    description = inspect.getdoc(function)
    if not description:
        raise ConfigError(
            f"the tool {name!r} needs a docstring, which tells the model what it does"
        )
    arguments = _arguments(function)

    async def handle(context: ToolContext, given: msgspec.Struct) -> str:
        values = {field: getattr(given, field) for field in given.__struct_fields__}
        if inspect.iscoroutinefunction(function):
            return str(await function(**values))
        return str(await anyio.to_thread.run_sync(lambda: function(**values), limiter=_limiter()))

    return Tool(
        name=name,
        description=description,
        arguments=arguments,
        handler=handle,
        read_only=read_only,
        repeatable=read_only,
    )


def _limiter() -> anyio.CapacityLimiter:
    limiter = _threads.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(TOOL_THREADS)
        _threads.set(limiter)
    return limiter


def _arguments(function: Callable[..., object]) -> type[msgspec.Struct]:
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigError(
                f"the tool {function.__name__!r} can't have the parameter *{parameter.name}:"
                " give each parameter a name"
            )
        if parameter.name not in hints:
            raise ConfigError(
                f"the parameter {parameter.name!r} of the tool {function.__name__!r} has no type:"
                " add a type annotation"
            )
        kind = hints[parameter.name]
        if parameter.default is parameter.empty:
            fields.append((parameter.name, kind))
        else:
            fields.append((parameter.name, kind, parameter.default))
    return msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)
