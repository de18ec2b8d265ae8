"""Checks all installed execution backends for `hermes doctor`, including those not in use."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
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
    """Yields a job for the backend in use, and a job for all other backends."""
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
        if one.name == chosen:
            run = partial(check_chosen, settings, one)
            yield _job(run, f"{chosen} can't be closed")
    if others := [one for one in manifests if one.name != chosen]:
        run = partial(check_others, settings, others)
        yield _job(run, "the backends that are not in use can't be closed")


def _job(run: Callable[[], Awaitable[Sequence[Check]]], late: str) -> CheckJob:
    return CheckJob(
        name="commands", run=run, seconds=BACKEND_SECONDS + CLOSING_ALLOWANCE, late=late
    )


async def check_chosen(
    settings: Settings, manifest: BackendManifest, seconds: float = BACKEND_SECONDS
) -> list[Check]:
    """Returns all results of checking the backend in use."""
    found = await _checked(settings, manifest, seconds)
    used = f"{manifest.name} (in use): "
    return [
        Check(name="commands", level=one.level, text=used + one.text, hint=one.hint)
        for one in found
    ]


async def check_others(
    settings: Settings, manifests: Sequence[BackendManifest], seconds: float = BACKEND_SECONDS
) -> list[Check]:
    """Checks the backends that are not in use, at the same time. Returns one line, which is never
    an error."""
    works: dict[str, bool] = {}

    async def check(one: BackendManifest) -> None:
        found = await _checked(settings, one, seconds)
        works[one.name] = all(finding.level != "error" for finding in found)

    async with anyio.create_task_group() as group:
        for one in manifests:
            group.start_soon(check, one)
    names = {
        "other backends that work here": [one.name for one in manifests if works[one.name]],
        "that do not": [one.name for one in manifests if not works[one.name]],
    }
    text = "; ".join(f"{label}: {', '.join(of) or 'none'}" for label, of in names.items())
    return [Check(name="commands", level="ok", text=text)]


async def _checked(
    settings: Settings, manifest: BackendManifest, seconds: float
) -> Sequence[BackendFinding]:
    try:
        return await _findings(settings, manifest, seconds)
    except HermesError as error:
        return (BackendFinding(level="error", text=str(error)),)
    except TimeoutError:
        text, hint = f"no answer within {seconds:g} s", "check the program that the backend uses"
        return (BackendFinding(level="error", text=text, hint=hint),)


async def _findings(
    settings: Settings, manifest: BackendManifest, seconds: float
) -> Sequence[BackendFinding]:
    backend = manifest.make(backend_options(settings))
    try:
        with anyio.fail_after(seconds):
            return await backend.check()
    finally:
        await backend.aclose()
