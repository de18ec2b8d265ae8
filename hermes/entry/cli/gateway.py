"""`hermes gateway`: the service in the foreground, and what there is to know about it."""

import gc
import logging
import os
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator
from functools import partial

import anyio
import anyio.abc
import click
import msgspec

from hermes import __version__
from hermes import settings as configuration
from hermes.control.gateway import Gateway
from hermes.entry.cli.logs import start_logging
from hermes.entry.cli.main import Commands, sole
from hermes.entry.cli.pidfile import PidFile, Running
from hermes.entry.cli.runtime import Runtime
from hermes.entry.http.server import ApiOptions, serve_http
from hermes.settings import Settings
from hermes.settings.models import resolve_model
from hermes.types.errors import ConfigError

log = logging.getLogger(__name__)

NO_MODEL = """\
No model is configured yet: every answer will say so. For any OpenAI-compatible endpoint:
  hermes config set model.base_url http://localhost:11434/v1
  hermes config set model.default NAME
or set the key of a provider, such as OPENROUTER_API_KEY, in {dotenv}. Then start again."""
QUESTION = (
    '{{"model": "{model}", "stream": true, "messages": [{{"role": "user", "content": "Hi"}}]}}'
)
STOP_SECONDS = 10.0
"""How long `stop` waits beyond the time that running turns are given."""


@click.command(cls=Commands, default="run")
def gateway() -> None:
    """Run the service, and look after it. Without a command: `hermes gateway run`."""


@gateway.command()
@click.option("--host", help="The address to listen on, instead of api_server.host.")
@click.option("--port", type=int, help="The port, instead of api_server.port; 0 takes a free one.")
@click.pass_obj
def run(runtime: Runtime, host: str | None, port: int | None) -> None:
    """Run the service in the foreground, until Ctrl-C or SIGTERM."""
    wished = {"API_SERVER_HOST": host, "API_SERVER_PORT": None if port is None else str(port)}
    given = {name: value for name, value in wished.items() if value is not None}
    settings = configuration.load(environ={**configuration.ENVIRON, **given})
    settings.home.ensure()
    key = runtime.api_key(settings) if settings.api_server.enabled else ""
    start_logging(settings.logging.level, settings.secrets() | {key})
    for warning in settings.warnings:
        click.echo(f"warning: {warning}", err=True)
    file = PidFile(settings.home.pid)
    with file.held() as ours:
        if not ours:
            _refuse_twin(settings, file.running())
        service = Service(runtime, settings, file)
        try:
            uvloop = {"use_uvloop": sys.platform != "win32"}
            anyio.run(service.run, backend_options=uvloop)
        except BaseExceptionGroup as group:
            error = sole(group)
            if not isinstance(error, ConfigError) or not isinstance(error.__cause__, OSError):
                raise
            # The address is taken: another try may well succeed, unlike after a wrong setting.
            click.echo(str(error), err=True)
            sys.exit(1)
        click.echo("stopped")


def _refuse_twin(settings: Settings, other: Running | None) -> None:
    port = settings.api_server.port
    if other is None or not port or other.port != port:
        log.warning("another gateway runs for %s: this one shares its work", settings.home.root)
        return
    where = f", {other.url}" if other.url else ""
    click.echo(
        f"A gateway for {settings.home.root} is running already (pid {other.pid}{where}):"
        " `hermes gateway stop` ends it, --port chooses another port.",
        err=True,
    )
    sys.exit(1)


class Service:
    """One run of the gateway with its doors."""

    def __init__(self, runtime: Runtime, settings: Settings, file: PidFile) -> None:
        self._runtime = runtime
        self._settings = settings
        self._file = file

    async def run(self) -> None:
        self._file.write(Running(pid=os.getpid(), port=self._settings.api_server.port))
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async with anyio.create_task_group() as ending:
                async with (
                    self._runtime.open_gateway(self._settings, terminal=False) as gateway,
                    anyio.create_task_group() as doors,
                ):
                    ending.start_soon(self._end, signals, gateway, doors.cancel_scope)
                    doors.start_soon(self._runtime.keep_snapshots, self._settings)
                    self._open_doors(gateway, doors)
                    tune_interpreter()
                ending.cancel_scope.cancel()

    def _open_doors(self, gateway: Gateway, doors: anyio.abc.TaskGroup) -> None:
        if self._settings.api_server.enabled:
            options = api_options(self._runtime, self._settings)
            doors.start_soon(serve_http, gateway, options, self._tell)
        else:
            click.echo(f"Hermes {__version__} runs; its HTTP API is off (api_server.enabled).")

    async def _end(
        self,
        signals: AsyncIterator[signal.Signals],
        gateway: Gateway,
        doors: anyio.CancelScope,
    ) -> None:
        """The first signal lets running turns finish, the second does not wait for them."""
        await anext(signals)
        seconds = self._settings.agent.drain_seconds
        log.info("stopping: running turns have %g s to finish; again to stop at once", seconds)

        async with anyio.create_task_group() as group:
            group.start_soon(_exit_at, signals)
            # The doors stay open meanwhile, so that who waits for an answer gets it.
            await gateway.drain(seconds)
            doors.cancel()

    def _tell(self, url: str) -> None:
        """Says what a newcomer needs, once the API listens."""
        settings = self._settings
        port = settings.api_server.port
        self._file.write(
            Running(pid=os.getpid(), port=port or int(url.rpartition(":")[2]), url=url)
        )
        click.echo(f"Hermes {__version__} listens on {url}")
        choice = resolve_model(settings)
        if choice is None:
            click.echo(NO_MODEL.format(dotenv=settings.home.dotenv))
        else:
            click.echo(f"model: {choice.model} ({choice.provider}, {choice.base_url})")
        click.echo(f"key:   {key_place(settings)}")
        click.echo(f"try:   {curl(settings, url)}")


def tune_interpreter() -> None:
    """For a process in which thousands may talk; measured, see docs/performance.md."""
    # What was made at the start stays for ever: with the usual thresholds the collector looks at
    # it again and again, and stops the loop for a quarter of a second.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


async def _exit_at(signals: AsyncIterator[signal.Signals]) -> None:
    await anext(signals)
    log.warning("stopped at once: what was running goes on at the next start")
    logging.shutdown()
    os._exit(1)


def api_options(runtime: Runtime, settings: Settings) -> ApiOptions:
    api, choice = settings.api_server, resolve_model(settings)
    own = {choice.model, f"{choice.provider}/{choice.model}"} if choice else set()
    return ApiOptions(
        key=runtime.api_key(settings),
        host=api.host,
        port=api.port,
        aliases=frozenset({"hermes-agent", api.model_name, *own}),
        reachable=partial(runtime.can_reach, settings),
        cors_origins=api.cors_origins,
        most_bytes=api.max_body_bytes,
    )


def key_place(settings: Settings) -> str:
    """Where the API's key is kept; never the key."""
    if settings.api_server.key:
        return settings.explain("api_server.key").source
    return str(settings.home.api_key)


def curl(settings: Settings, url: str) -> str:
    """A request that can be pasted into a shell."""
    key = "$API_SERVER_KEY"
    if not settings.api_server.key:
        key = f"$(cat {shlex.quote(str(settings.home.api_key))})"
    body = QUESTION.format(model=settings.api_server.model_name)
    return (
        f'curl -sN {url}/v1/chat/completions -H "Authorization: Bearer {key}"'
        f" -H 'Content-Type: application/json' -d {shlex.quote(body)}"
    )


@gateway.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(as_json: bool) -> None:
    """Say whether the service runs; exit code 1 when it does not."""
    home = configuration.locate()
    running = PidFile(home.pid).running()
    if as_json:
        facts = msgspec.to_builtins(running) if running else {}
        shown = {"running": running is not None, "home": str(home.root), **facts}
        click.echo(msgspec.json.encode(shown).decode())
    elif running is None:
        click.echo(f"No gateway runs for {home.root}.")
    else:
        where = f" and listens on {running.url}" if running.url else ""
        click.echo(f"A gateway for {home.root} runs as pid {running.pid}{where}.")
    sys.exit(0 if running else 1)


@gateway.command()
def stop() -> None:
    """End the running service; its turns get agent.drain_seconds to finish."""
    settings = configuration.load()
    file = PidFile(settings.home.pid)
    running = file.running()
    if running is None:
        click.echo(f"No gateway runs for {settings.home.root}.", err=True)
        sys.exit(1)
    os.kill(running.pid, signal.SIGTERM)
    deadline = time.monotonic() + settings.agent.drain_seconds + STOP_SECONDS
    while (left := file.running()) and left.pid == running.pid:
        if time.monotonic() > deadline:
            click.echo(f"pid {running.pid} was told to stop and has not; it may need kill -9")
            sys.exit(1)
        time.sleep(0.05)
    click.echo(f"stopped (pid {running.pid})")
