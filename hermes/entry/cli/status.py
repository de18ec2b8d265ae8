"""`hermes status`: summarises the home, its configuration, the model and the running service."""

import anyio
import click
import msgspec

from hermes import __version__
from hermes import settings as configuration
from hermes.control import sessions as conversations
from hermes.entry.cli.runtime import Runtime
from hermes.entry.cli.sessions import when
from hermes.entry.output import say, say_json
from hermes.settings import Settings
from hermes.text.redact import redact_tokens
from hermes.types.deployment import RunningGateway
from hermes.types.errors import HermesError
from hermes.types.value import Value

NO_SANDBOX = "local: on this machine with your rights, without a sandbox"
NO_APPROVALS = "off: the agent does dangerous actions without asking"
NO_MODEL = "none is configured; `hermes model` says how to choose one"


class StatusReport(Value):
    """The state of a home. A field is an empty text if there is nothing to report in it."""

    version: str
    home: str
    problem: str = ""
    """The error in the configuration."""
    model: str = ""
    provider: str = ""
    address: str = ""
    model_problem: str = ""
    """The reason why no model can be called."""
    gateways: tuple[RunningGateway, ...] = ()
    commands: str = ""
    """The backend that runs the agent's commands."""
    approvals: str = ""
    """The mode of approvals: when a person has to approve a dangerous action."""
    platforms: tuple[str, ...] = ()
    """Chat platforms that have settings."""
    last_used: float | None = None
    """The time at which a conversation was last used, in seconds since 1970."""


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(runtime: Runtime, as_json: bool) -> None:
    """Show the model, the service and the home.

    The exit code is 1 if the configuration or the model can't be used. `hermes gateway status`
    tells whether the service runs.
    """
    report = report_of(runtime)
    if as_json:
        # Scripts get every field, also the fields that have their default values.
        fields = msgspec.structs.asdict(report)
        say_json(msgspec.json.format(msgspec.json.encode(fields), indent=2).decode())
    else:
        for label, value in rows(report):
            say(f"{label:<9} {value}")
    if report.problem or report.model_problem:
        raise SystemExit(1)


def report_of(runtime: Runtime) -> StatusReport:
    home = configuration.locate()
    report = StatusReport(
        version=__version__,
        home=str(home.root),
        gateways=tuple(runtime.running_gateways(home.run)),
    )
    try:
        settings = configuration.load()
        report = msgspec.structs.replace(
            report,
            commands=settings.terminal.backend,
            approvals=settings.approvals.policy(settings.terminal.backend).mode,
            platforms=tuple(settings.platforms),
            last_used=_last_used(runtime, settings),
        )
    except HermesError as error:
        return msgspec.structs.replace(report, problem=str(error))
    try:
        choice = runtime.models(settings).main()
    except HermesError as error:
        return msgspec.structs.replace(report, model_problem=str(error))
    if choice is None:
        return msgspec.structs.replace(report, model_problem=NO_MODEL)
    return msgspec.structs.replace(
        report, model=choice.model, provider=choice.provider, address=redact_tokens(choice.base_url)
    )


def _last_used(runtime: Runtime, settings: Settings) -> float | None:
    # This command must not create a store.
    if not settings.home.store.exists():
        return None

    async def run() -> float | None:
        async with runtime.open_store(settings) as store:
            found = await store.run(conversations.listed, None, 1)
            return found[0].updated_at if found else None

    return anyio.run(run)


def rows(report: StatusReport) -> list[tuple[str, str]]:
    """Returns the report as labels and values."""
    place = ", ".join(filter(None, (report.provider, report.address)))
    model = f"{report.model} ({place})" if report.model else report.model_problem
    gateways = [
        f"runs, {one.url or f'port {one.port}'} (pid {one.pid})" for one in report.gateways
    ] or ["does not run; `hermes gateway` starts it"]
    shown = [
        ("Hermes", report.version),
        ("home", report.home),
        ("config", report.problem or "ok"),
        *([] if report.problem else [("model", model)]),
        *(("gateway", one) for one in gateways),
    ]
    if report.commands:
        shown.append(("commands", NO_SANDBOX if report.commands == "local" else report.commands))
    if report.approvals == "off":
        shown.append(("approvals", NO_APPROVALS))
    if report.platforms:
        shown.append(("platforms", ", ".join(report.platforms)))
    if report.last_used is not None:
        shown.append(("last used", when(report.last_used)))
    return shown
