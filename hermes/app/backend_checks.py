"""Checks the execution backends for `hermes doctor`: the one in use, and those that could be."""

from collections.abc import Iterator, Sequence
from functools import partial

from hermes.app.backends import backend_options, configured_backend
from hermes.settings import Settings
from hermes.types.checks import Check, CheckJob, known_checks
from hermes.types.errors import ConfigError
from hermes.types.execution import BackendFinding, BackendManifest, ExecutionBackend

BACKEND_SECONDS = 10.0
"""Longest time for the check of a backend, which may start a container or connect to a machine."""


def backend_jobs(settings: Settings, manifests: Sequence[BackendManifest]) -> Iterator[CheckJob]:
    """Yields a job for each backend that is installed."""
    chosen = settings.terminal.backend
    try:
        used = configured_backend(settings, manifests)
    except ConfigError as error:
        hint = "set terminal.backend to one of these names"
        yield known_checks(Check(name="commands", level="error", text=str(error), hint=hint))
        used = None
    else:
        if used is None:
            text = f"the agent runs no commands (terminal.backend: {chosen})"
            yield known_checks(Check(name="commands", level="ok", text=text))
    for one in manifests:
        backend = used if used and one.name == chosen else one.make(backend_options(settings))
        yield CheckJob(
            name="commands",
            run=partial(check_backend, one.name, backend, in_use=backend is used),
            seconds=BACKEND_SECONDS,
            late=f"{one.name}: no answer within {BACKEND_SECONDS:g} s",
            hint="check the program or the machine that this backend uses",
        )


async def check_backend(name: str, backend: ExecutionBackend, *, in_use: bool) -> list[Check]:
    """Returns the findings of the backend. A backend that is not in use gets one line, which is
    never an error."""
    try:
        found = await backend.check()
    finally:
        await backend.aclose()
    if in_use:
        return [
            Check(
                name="commands", level=one.level, text=f"{name} (in use): {one.text}", hint=one.hint
            )
            for one in found
        ]
    return [_unused(name, found)]


def _unused(name: str, found: Sequence[BackendFinding]) -> Check:
    failed = next((one for one in found if one.level == "error"), None)
    if failed is None:
        return Check(name="commands", level="ok", text=f"{name} would work here")
    text = f"{name} would not work here: {failed.text}"
    return Check(name="commands", level="ok", text=text, hint=failed.hint)
