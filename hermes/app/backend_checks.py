"""Checks all installed execution backends for `hermes doctor`, including those not in use."""

from collections.abc import Iterator, Sequence
from functools import partial

import anyio

from hermes.app.backends import backend_options, configured_backend
from hermes.settings import Settings
from hermes.types.checks import Check, CheckJob, known_checks
from hermes.types.errors import ConfigError, HermesError
from hermes.types.execution import BackendFinding, BackendManifest

BACKEND_SECONDS = 10.0
"""Longest time in seconds for the check of a backend. The check may start a container or connect to
another machine."""
CLOSING_ALLOWANCE = 5.0
"""Additional seconds for closing the backend after its check."""


def backend_jobs(settings: Settings, manifests: Sequence[BackendManifest]) -> Iterator[CheckJob]:
    """Yields a job for each backend that is installed."""
    chosen = settings.terminal.backend
    if chosen not in [one.name for one in manifests]:
        try:
            configured_backend(settings, manifests)
        except ConfigError as error:
            hint = "set terminal.backend to one of these names"
            yield known_checks(Check(name="commands", level="error", text=str(error), hint=hint))
        else:
            text = f"the agent runs no commands (terminal.backend: {chosen})"
            yield known_checks(Check(name="commands", level="ok", text=text))
    for one in manifests:
        yield CheckJob(
            name="commands",
            run=partial(check_backend, settings, one, BACKEND_SECONDS),
            seconds=BACKEND_SECONDS + CLOSING_ALLOWANCE,
            late=f"{one.name} can't be closed",
        )


async def check_backend(
    settings: Settings, manifest: BackendManifest, seconds: float
) -> list[Check]:
    """Returns the results of checking the backend. A backend that is not in use gets one result,
    which is never an error."""
    name = manifest.name
    try:
        found = await _findings(settings, manifest, seconds)
    except HermesError as error:
        found = (BackendFinding(level="error", text=str(error)),)
    except TimeoutError:
        text, hint = f"no answer within {seconds:g} s", "check the program that the backend uses"
        found = (BackendFinding(level="error", text=text, hint=hint),)
    if name != settings.terminal.backend:
        return [_unused(name, found)]
    return [
        Check(name="commands", level=one.level, text=f"{name} (in use): {one.text}", hint=one.hint)
        for one in found
    ]


async def _findings(
    settings: Settings, manifest: BackendManifest, seconds: float
) -> Sequence[BackendFinding]:
    backend = manifest.make(backend_options(settings))
    try:
        with anyio.fail_after(seconds):
            return await backend.check()
    finally:
        await backend.aclose()


def _unused(name: str, found: Sequence[BackendFinding]) -> Check:
    failed = next((one for one in found if one.level == "error"), None)
    if failed is None:
        return Check(name="commands", level="ok", text=f"{name} would work here")
    text = f"{name} would not work here: {failed.text}"
    return Check(name="commands", level="ok", text=text, hint=failed.hint)
