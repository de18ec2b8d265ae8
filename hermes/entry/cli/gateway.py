"""`hermes gateway`: runs the service in the foreground, and shows or stops running services."""

import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext

import anyio
import anyio.abc
import anyio.to_thread
import click
import msgspec
from msgspec.structs import replace

from hermes import __version__
from hermes import settings as configuration
from hermes.control.gateway import Gateway
from hermes.entry.cli.account_lines import account_lines
from hermes.entry.cli.allocator import tune_interpreter
from hermes.entry.cli.embedded import stand_in
from hermes.entry.cli.hello import model_line, say_hello, ways_in
from hermes.entry.cli.logs import start_service_log
from hermes.entry.cli.main import Commands, plainly, sole
from hermes.entry.cli.nodes import node_report
from hermes.entry.cli.runtime import Runtime
from hermes.entry.http.descriptors import raise_descriptor_limit
from hermes.entry.http.server import ApiOptions, serve_app, serve_http
from hermes.entry.http.waiting import waiting_app
from hermes.entry.messaging import configured_routes, credential_keys, make_adapters
from hermes.entry.output import say, say_json, say_line
from hermes.entry.supervisor import serve
from hermes.settings import Settings
from hermes.settings.keys import create_key
from hermes.settings.platforms import check_platforms
from hermes.settings.sources import ENVIRONMENT
from hermes.text.quantity import counted
from hermes.types.deployment import GatewayRegistration, RunningGateway
from hermes.types.errors import ConfigError, HermesError, StoreUnavailable

log = logging.getLogger(__name__)

MOST_LINES = 3
"""Maximum number of log lines about one subject when the gateway starts."""
STORE_POLL_SECONDS = 1.0
"""Seconds between two attempts to open the store during the start."""
STOP_WAIT_SECONDS = 10.0
"""Seconds that `stop` waits in addition to the time that running turns get to finish
(`agent.drain_seconds`)."""


@click.command(cls=Commands, default="run")
def gateway() -> None:
    """Run and manage the service. Without a command: `hermes gateway run`."""


@gateway.command()
@click.option("--host", help="The address to listen on, instead of api_server.host.")
@click.option("--port", type=int, help="The port, instead of api_server.port; 0 takes a free one.")
@click.option("--embedded", is_flag=True, help="Use a demo model if no model is configured.")
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="The format of the log, instead of logging.format.",
)
@click.option(
    "--hello", metavar="TEXT", help="Send this question at the start, and show the answer."
)
@click.pass_obj
def run(
    runtime: Runtime,
    host: str | None,
    port: int | None,
    embedded: bool,
    log_format: str | None,
    hello: str | None,
) -> None:
    """Run the service in the foreground, until Ctrl-C or SIGTERM.

    The embedded demo model runs in a process of this machine and has no tools. The model is
    downloaded once, and config.yaml then names it. As soon as you set the key or the address of
    another model, that model replaces the embedded model.
    """
    wished = {
        "API_SERVER_HOST": host,
        "API_SERVER_PORT": None if port is None else str(port),
        "HERMES_LOG_FORMAT": log_format,
    }
    given = {name: value for name, value in wished.items() if value is not None}
    environ = {**configuration.ENVIRON, **given}
    settings = configuration.load(environ=environ)
    settings.home.ensure()
    if embedded:
        settings = stand_in(settings, runtime, environ)
    key = runtime.api_key(settings) if settings.api_server.enabled else ""
    service_log = start_service_log(settings, runtime.secrets(settings) | {key})
    _refuse_twin(runtime, settings)
    _log_findings(runtime, settings)
    with runtime.register_gateway(settings.home.run) as registration:
        service = GatewayService(runtime, settings, registration, hello)
        service.pause_log = service_log.paused_on_screen
        try:
            uvloop = {"use_uvloop": sys.platform != "win32"}
            anyio.run(service.run, backend_options=uvloop)
        except BaseExceptionGroup as group:
            error = sole(group)
            if not isinstance(error, ConfigError) or not isinstance(error.__cause__, OSError):
                raise
            # The address is in use. A later attempt may succeed, so the exit code is 1.
            say(error, err=True)
            sys.exit(1)
        say("stopped")


def _log_findings(runtime: Runtime, settings: Settings) -> None:
    """Logs warnings and other facts about the home that the operator should know, in a few
    lines."""
    for line in shortened((*settings.warnings, *_ignored_keys(settings))):
        log.warning(line)
    if unused := runtime.unused_data(settings):
        log.warning("the home contains data of Hermes Agent that is not used: %s", unused)


def _ignored_keys(settings: Settings) -> list[str]:
    ignored = settings.sources.ignored
    if len(ignored) <= MOST_LINES:
        return list(ignored)
    name = settings.home.config.name
    return [f"{name}: {len(ignored)} keys are ignored; `hermes config check` lists them"]


def shortened(lines: Sequence[str]) -> list[str]:
    """Returns the first lines, and a line with the number of the remaining lines."""
    if len(lines) <= MOST_LINES:
        return list(lines)
    more = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], f"{counted(more, 'more line')}; `hermes config check` shows all"]


def _refuse_twin(runtime: Runtime, settings: Settings) -> None:
    port = settings.api_server.port
    others = runtime.running_gateways(settings.home.run)
    other = next((one for one in others if port and one.port == port), None)
    if other is None:
        for one in others:
            say(f"A gateway runs already for this home ({named(one)}): they share the work.")
        return
    where = f", {other.url}" if other.url else ""
    say(
        f"A gateway for {settings.home.root} is running already (pid {other.pid}{where}):"
        " `hermes gateway stop` ends it, --port or API_SERVER_PORT chooses another port.",
        err=True,
    )
    sys.exit(1)


class GatewayService:
    """One run of the gateway with its entry points."""

    def __init__(
        self,
        runtime: Runtime,
        settings: Settings,
        registration: GatewayRegistration,
        hello: str | None = None,
    ) -> None:
        self._runtime = runtime
        self._settings = settings
        self._registration = registration
        self._listed = RunningGateway(pid=os.getpid(), port=settings.api_server.port)
        self._hello = hello
        """A question that is sent to the API as soon as the API listens."""
        self.pause_log: Callable[[], AbstractContextManager[None]] = nullcontext
        """Holds back log lines while a text for new users is printed."""

    async def run(self) -> None:
        raise_descriptor_limit()
        self._registration.write(self._listed)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as ending:
                async with AsyncExitStack() as opened:
                    gateway = await self._open(opened, signals)
                    if gateway is None:
                        return
                    async with anyio.create_task_group() as doors:
                        ending.start_soon(self._end, signals, gateway, doors.cancel_scope)
                        doors.start_soon(self._runtime.run_housekeeping, self._settings)
                        doors.start_soon(self._list_accounts, gateway)
                        self._open_doors(gateway, doors)
                        tune_interpreter()
                ending.cancel_scope.cancel()

    async def _open(
        self, opened: AsyncExitStack, signals: AsyncIterator[signal.Signals]
    ) -> Gateway | None:
        """Returns the gateway as soon as its store can be opened, or None if a signal arrives
        first."""
        while True:
            try:
                gateway = self._runtime.open_gateway(self._settings, terminal=False)
                return await opened.enter_async_context(gateway)
            except (HermesError, OSError, BaseExceptionGroup) as raised:
                error = sole(raised)
                if not isinstance(error, StoreUnavailable | OSError):
                    raise
                if await self._has_room():
                    if not self._settings.store.url:
                        raise
                    log.error("nothing is accepted until the store can be opened: %s", error)
                    reason, can_go_on = "the database can't be reached", self._can_open_store
                else:
                    disk = self._settings.home.root
                    log.error(
                        "the disk of %s is full: nothing is accepted until there is room", disk
                    )
                    reason, can_go_on = "the disk is full", self._has_room
            if not await self._wait(signals, reason, can_go_on):
                return None

    async def _has_room(self) -> bool:
        return await anyio.to_thread.run_sync(self._runtime.has_room, self._settings)

    async def _can_open_store(self) -> bool:
        try:
            async with self._runtime.open_store(self._settings):
                return True
        except StoreUnavailable:
            return False

    async def _wait(
        self,
        signals: AsyncIterator[signal.Signals],
        reason: str,
        can_go_on: Callable[[], Awaitable[bool]],
    ) -> bool:
        """Answers requests with 503 until the gateway can continue. Returns False if a signal
        arrives first."""
        done = False

        async def wait() -> None:
            nonlocal done
            while not done:
                await anyio.sleep(STORE_POLL_SECONDS)
                done = await can_go_on()
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            if self._settings.api_server.enabled:
                options = api_options(self._runtime, self._settings)
                app = waiting_app(options, reason)
                group.start_soon(serve_app, app, options, lambda url: None)
            await anext(signals)
            group.cancel_scope.cancel()
        return done

    def _open_doors(self, gateway: Gateway, doors: anyio.abc.TaskGroup) -> None:
        def listening(url: str) -> None:
            doors.start_soon(self._welcome, url)

        platforms = self._runtime.platforms()
        for line in shortened(check_platforms(self._settings, platforms)):
            log.warning(line)
        keys = credential_keys(self._settings, platforms)
        for adapter in make_adapters(self._settings, platforms):
            doors.start_soon(serve, gateway, adapter, keys.get(adapter.account, ""))
        webhooks = configured_routes(self._settings, platforms)
        if self._settings.api_server.enabled:
            options = api_options(self._runtime, self._settings)
            doors.start_soon(serve_http, gateway, options, listening, webhooks)
        else:
            say(f"Hermes {__version__} runs; its HTTP API is off (api_server.enabled).")

    async def _list_accounts(self, gateway: Gateway) -> None:
        """Keeps the states of the accounts in the list of running gateways up to date."""
        while True:
            self._listed = replace(self._listed, accounts=gateway.accounts.all())
            self._registration.write(self._listed)
            await gateway.accounts.changed()

    async def _end(
        self,
        signals: AsyncIterator[signal.Signals],
        gateway: Gateway,
        doors: anyio.CancelScope,
    ) -> None:
        """Waits for a signal, and then drains the gateway: running turns can finish. A second
        signal ends the process at once."""
        await anext(signals)
        seconds = self._settings.agent.drain_seconds
        log.info("stopping: running turns have %g s to finish; again to stop at once", seconds)

        async with anyio.create_task_group() as group:
            group.start_soon(_exit_at, signals)
            # The entry points stay open meanwhile, so that waiting clients get their answers.
            await gateway.drain(seconds)
            doors.cancel()

    async def _welcome(self, url: str) -> None:
        """Prints the address, the model and the ways to use the service. It is called when the API
        listens."""
        port = self._listed.port or int(url.rpartition(":")[2])
        self._listed = replace(self._listed, port=port, url=url)
        self._registration.write(self._listed)
        say(f"Hermes {__version__} listens on {url}")
        say(model_line(self._settings, self._runtime.models(self._settings)))
        with self.pause_log():
            if self._hello:
                await say_hello(url, self._runtime.api_key(self._settings), self._hello)
            say("\n".join(ways_in(self._settings, url)))


async def _exit_at(signals: AsyncIterator[signal.Signals]) -> None:
    await anext(signals)
    log.warning("stopped at once: running turns resume at the next start")
    logging.shutdown()
    os._exit(1)


def api_options(runtime: Runtime, settings: Settings) -> ApiOptions:
    api, choice = settings.api_server, runtime.models(settings).main()
    own = {choice.model, f"{choice.provider}/{choice.model}"} if choice else set()
    return ApiOptions(
        key=runtime.api_key(settings),
        host=api.host,
        port=api.port,
        model_name=api.model_name,
        aliases=frozenset({"hermes-agent", *own}),
        model_problem=runtime.model_problem(settings),
        ignored_options=runtime.ignored_options(settings),
        cors_origins=api.cors_origins,
        most_bytes=api.max_body_bytes,
    )


@gateway.command(name="new-key")
@click.pass_obj
@plainly
def new_key(runtime: Runtime) -> None:
    """Make a new random key for the clients of the HTTP API.

    The new key replaces the key in the home's key file. A running service uses the new key after
    a restart.
    """
    home = configuration.locate()
    create_key(home)
    say(f"A new key is in {home.api_key}")
    try:
        source = configuration.load().explain("api_server.key").source
    except ConfigError as error:
        say(f"note: {error}", err=True)
        return
    if source != "default":
        say(f"note: {source} sets another one, which is used instead", err=True)
    elif runtime.running_gateways(home.run):
        say("note: the running gateway accepts the old key until you restart it", err=True)


@gateway.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(runtime: Runtime, as_json: bool) -> None:
    """Show the services that run for this home. The exit code is 1 if none runs.

    If the store is a PostgreSQL database, the processes on all machines that use it are listed.
    """
    home = configuration.locate()
    running = runtime.running_gateways(home.run)
    report = node_report(runtime, running)
    if as_json:
        gateways = [msgspec.to_builtins(one) for one in running]
        first = gateways[0] if gateways else {}
        shown = {"running": bool(running), "home": str(home.root), **first, "gateways": gateways}
        shown["nodes"] = report.fields()
        say_json(msgspec.json.encode(shown).decode())
    elif not running:
        say(f"No gateway runs for {home.root}.")
    for one in [] if as_json else running:
        where = f" and listens on {one.url}" if one.url else ""
        say(f"A gateway for {home.root} runs as pid {one.pid}{where}.")
        for line in account_lines(one.accounts):
            say_line(line)
    if report.problem:
        say(f"The processes of the store can't be listed: {report.problem}", err=True)
    if report.nodes and not as_json:
        say("\n".join(["The store is used by:", *report.lines()]))
    sys.exit(0 if running else 1)


@gateway.command()
@click.option("--port", type=int, help="The port of the service, instead of api_server.port.")
@click.option("--all", "everything", is_flag=True, help="Stop all services of this home.")
@click.pass_obj
def stop(runtime: Runtime, port: int | None, everything: bool) -> None:
    """Stop the running service. Its turns get agent.drain_seconds to finish.

    Stops the service on the configured port. If neither --port nor the environment names a port and
    only one service runs, stops that service, whatever its port is.
    """
    settings = configuration.load()
    running = runtime.running_gateways(settings.home.run)
    if not running:
        say(f"No gateway runs for {settings.home.root}.", err=True)
        sys.exit(1)
    meant = running if everything else _meant(settings, running, port)
    if not meant:
        wanted = settings.api_server.port if port is None else port
        known = "; ".join(map(named, running))
        say(
            f"No gateway of {settings.home.root} runs on port {wanted}. Choose another one with"
            f" --port, or use --all: {known}",
            err=True,
        )
        sys.exit(1)
    for one in meant:
        os.kill(one.pid, signal.SIGTERM)
    deadline = time.monotonic() + settings.agent.drain_seconds + STOP_WAIT_SECONDS
    for one in meant:
        _await_end(runtime, settings, one, deadline)


def _meant(
    settings: Settings, running: list[RunningGateway], port: int | None
) -> list[RunningGateway]:
    wanted = settings.api_server.port if port is None else port
    on_port = [one for one in running if one.port == wanted]
    explicit = port is not None or settings.sources.layer("api_server.port") == ENVIRONMENT
    return running if not (on_port or explicit) and len(running) == 1 else on_port


def _await_end(runtime: Runtime, settings: Settings, told: RunningGateway, deadline: float) -> None:
    while any(one.pid == told.pid for one in runtime.running_gateways(settings.home.run)):
        if time.monotonic() > deadline:
            say(f"pid {told.pid} has not stopped in time; it may need kill -9")
            sys.exit(1)
        time.sleep(0.05)
    say(f"stopped (pid {told.pid})")


def named(one: RunningGateway) -> str:
    return f"port {one.port}, pid {one.pid}"
