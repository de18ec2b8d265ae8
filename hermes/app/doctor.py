"""Collects the checks of `hermes doctor` from all parts of the application, and runs them."""

import platform
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import aiohttp
import anyio
import anyio.to_thread
from msgspec.structs import replace

from hermes import __version__
from hermes import settings as configuration
from hermes.app.backend_checks import backend_jobs
from hermes.app.builtins import Builtins, all_plugins, configured_models
from hermes.app.gateway import http_session
from hermes.app.stores import known_scheme, nats_extra, postgres_extra
from hermes.core.models.health import model_jobs
from hermes.core.models.model_discovery import ModelDiscovery
from hermes.entry.messaging import make_adapters
from hermes.entry.platforms.verification import account_jobs
from hermes.plugins import Plugins, check_plugins
from hermes.settings import Settings
from hermes.settings.platforms import check_platforms
from hermes.settings.sources import ConfigProblems
from hermes.state.disk import check_disk
from hermes.state.folder_ids import check_shared_folder
from hermes.state.paths import Home
from hermes.state.pidfile import check_gateways
from hermes.state.privacy import check_permissions
from hermes.state.sqlite.health import check_database
from hermes.text.redact import redact_tokens
from hermes.types.checks import Check, CheckJob, known_checks
from hermes.types.errors import ConfigError, HermesError

APPROVALS_OFF = Check(
    name="approvals",
    level="warning",
    text="the agent does dangerous actions without asking a person",
    hint="set approvals.mode to auto, unless nothing of value can be damaged",
)
DAMAGE_SECONDS = 3.0
"""Longest time for the search for damage in the database, in seconds."""
STORE_CHECK_SECONDS = 10.0
"""Longest time for the whole check of the store, in seconds."""


async def diagnose(folder: Path, environ: Mapping[str, str]) -> list[Check]:
    """Checks the home in this folder. If the settings are wrong, the checks that need them are
    left out."""
    home, found = Home(root=folder), [_check_versions()]
    settings: Settings | None = None
    try:
        settings = configuration.read(home, environ)
    except ConfigError as error:
        hint = f"correct {home.config}, {home.dotenv} or the environment variable"
        found += _problems("settings", error, hint)
    async with http_session() as session:
        jobs = [*_home_jobs(home)]
        if settings is None:
            jobs += [_database_job(home), _gateway_job(home, needed=False)]
        else:
            jobs += _configured_jobs(settings, session)
        found += await run_jobs(jobs)
    secrets = settings.secrets() if settings else frozenset()
    return [_redacted(one, secrets) for one in found]


async def run_jobs(jobs: Sequence[CheckJob]) -> list[Check]:
    """Runs the jobs at the same time. Returns their checks in the order of the jobs."""
    found: list[Sequence[Check]] = [()] * len(jobs)

    async def run(number: int, job: CheckJob) -> None:
        found[number] = (Check(name=job.name, level="error", text=job.late, hint=job.hint),)
        with anyio.move_on_after(job.seconds):
            try:
                found[number] = await job.run()
            except (HermesError, OSError) as error:
                found[number] = (Check(name=job.name, level="error", text=str(error)),)

    async with anyio.create_task_group() as group:
        for number, job in enumerate(jobs):
            group.start_soon(run, number, job)
    return [check for checks in found for check in checks]


def _check_versions() -> Check:
    system = f"{platform.system()} {platform.release()}"
    text = (
        f"Hermes {__version__}, Python {platform.python_version()},"
        f" SQLite {sqlite3.sqlite_version}, {system}"
    )
    return Check(name="versions", level="ok", text=text)


def _problems(name: str, error: ConfigError, hint: str) -> list[Check]:
    problems = error.problems if isinstance(error, ConfigProblems) else (str(error),)
    return [Check(name=name, level="error", text=text, hint=hint) for text in problems]


def _home_jobs(home: Home) -> Iterator[CheckJob]:
    yield CheckJob(name="disk", run=_in_thread(lambda: [check_disk(home.root)]))
    yield CheckJob(name="permissions", run=_in_thread(partial(check_permissions, home)))
    yield CheckJob(name="plugins", run=_in_thread(check_plugins))


def _configured_jobs(settings: Settings, session: aiohttp.ClientSession) -> Iterator[CheckJob]:
    plugins = _plugins()
    yield _settings_job(settings, plugins)
    yield _store_job(settings)
    if settings.bus.url:
        yield _bus_job(settings.bus.url)
    yield from backend_jobs(settings, plugins.backends())
    if settings.approvals.policy(settings.terminal.backend).mode == "off":
        yield known_checks(APPROVALS_OFF)
    models = configured_models(settings, plugins)
    yield from model_jobs(models, ModelDiscovery(session, models.wires, models.cache))
    accounts = [*_account_jobs(settings, plugins)]
    yield _gateway_job(settings.home, needed=bool(accounts))
    yield from accounts


def _plugins() -> Plugins:
    try:
        return all_plugins()
    except ConfigError:
        # This error is reported elsewhere: `check_plugins` names the plugin that can't be loaded.
        return Plugins([Builtins()])


def _settings_job(settings: Settings, plugins: Plugins) -> CheckJob:
    async def run() -> list[Check]:
        warnings = [*settings.warnings, *check_platforms(settings, plugins.platforms())]
        if settings.store.shared_folder:
            check_shared_folder(settings.files.root)
        hint = "`hermes config check` shows all warnings"
        found = [Check(name="settings", level="warning", text=text, hint=hint) for text in warnings]
        text = f"{settings.home.config} and the environment are valid"
        return found or [Check(name="settings", level="ok", text=text)]

    return CheckJob(name="settings", run=run)


def _store_job(settings: Settings) -> CheckJob:
    url = settings.store.direct_url or settings.store.url
    if not url:
        return _database_job(settings.home)

    async def run() -> list[Check]:
        known_scheme(url, "store.url")
        with postgres_extra():
            # Imported here because psycopg is an extra.
            from hermes.state.postgres.health import check_postgres  # noqa: PLC0415
        return [await check_postgres(url)]

    late = f"the database at store.url did not answer within {STORE_CHECK_SECONDS:g} s"
    hint = "check the network, and whether PostgreSQL runs there"
    return CheckJob(name="store", run=run, seconds=STORE_CHECK_SECONDS, late=late, hint=hint)


def _bus_job(url: str) -> CheckJob:
    async def run() -> list[Check]:
        with nats_extra():
            # Imported here because nats-py is an extra.
            from hermes.state.nats.address import nats_addresses  # noqa: PLC0415
            from hermes.state.nats.health import check_nats  # noqa: PLC0415
        return await check_nats(nats_addresses(url))

    late = f"the servers in bus.url did not answer within {STORE_CHECK_SECONDS:g} s"
    hint = "check the network, and whether NATS runs there"
    return CheckJob(name="bus", run=run, seconds=STORE_CHECK_SECONDS, late=late, hint=hint)


def _database_job(home: Home) -> CheckJob:
    run = _in_thread(partial(check_database, home, DAMAGE_SECONDS))
    late, hint = f"{home.store} can't be read in time", "check the disk"
    return CheckJob(name="store", run=run, seconds=STORE_CHECK_SECONDS, late=late, hint=hint)


def _gateway_job(home: Home, *, needed: bool) -> CheckJob:
    return CheckJob(
        name="gateway", run=_in_thread(partial(check_gateways, home.run, needed=needed))
    )


def _account_jobs(settings: Settings, plugins: Plugins) -> Iterator[CheckJob]:
    """Yields the jobs that check the accounts. Wrong settings of one platform don't hide the
    accounts of other platforms."""
    for one in plugins.platforms():
        try:
            yield from account_jobs(make_adapters(settings, [one]))
        except ConfigError as error:
            hint = f"correct the settings of {one.name}"
            yield known_checks(*_problems(one.name, error, hint))


def _in_thread(check: Callable[[], Sequence[Check]]) -> Callable[[], Awaitable[Sequence[Check]]]:
    return partial(anyio.to_thread.run_sync, check, abandon_on_cancel=True)


def _redacted(check: Check, secrets: frozenset[str]) -> Check:
    return replace(
        check, text=redact_tokens(check.text, secrets), hint=redact_tokens(check.hint, secrets)
    )
