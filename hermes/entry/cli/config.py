"""`hermes config`: what is set, why, and how to change it."""

from pathlib import Path

import click
import msgspec

from hermes import settings as configuration
from hermes.entry.cli.main import plainly
from hermes.settings.edit import migrate, set_value
from hermes.settings.models import resolve_model
from hermes.settings.sources import ConfigProblems, Explanation
from hermes.text.redact import hide, mask
from hermes.types.errors import HermesError


@click.group()
def config() -> None:
    """Show, explain and change the configuration."""


@config.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@plainly
def show(as_json: bool) -> None:
    """Show every setting."""
    settings = configuration.load()
    values = {key: _shown(settings.explain(key)) for key in settings.keys()}  # noqa: SIM118
    if as_json:
        click.echo(_json(values))
        return
    click.echo(f"# {settings.home.config}")
    for key, value in values.items():
        click.echo(f"{key} = {_text(value)}")


@config.command()
@click.argument("key")
@plainly
def get(key: str) -> None:
    """Print the value of KEY."""
    click.echo(_text(_shown(configuration.load().explain(key))))


@config.command(name="set")
@click.argument("key")
@click.argument("value")
@plainly
def set_(key: str, value: str) -> None:
    """Set KEY to VALUE, in config.yaml; a secret goes into .env."""
    change = set_value(key, value)
    click.echo(f"{change.name} is set in {change.path}")
    if change.backup:
        click.echo(f"comments were not kept: the file as it was is {change.backup}")
    if change.overruled_by:
        click.echo(f"note: {change.overruled_by} overrules it", err=True)


@config.command()
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@plainly
def explain(key: str, as_json: bool) -> None:
    """Say where the value of KEY comes from, and what it overrules."""
    explanation = configuration.load().explain(key)
    shadowed = [
        {"source": source, "value": _masked(value, secret=explanation.secret)}
        for source, value in explanation.shadowed
    ]
    shown = {"key": explanation.key, "value": _shown(explanation), "source": explanation.source}
    if as_json:
        click.echo(_json({**shown, "shadowed": shadowed}))
        return
    click.echo(f"{explanation.key} = {_text(shown['value'])}  ({explanation.source})")
    for one in shadowed:
        click.echo(f"  instead of {_text(one['value'])}  ({one['source']})")


@config.command()
def check() -> None:
    """Check the configuration; exit code 1 when something is wrong."""
    problems: tuple[str, ...] = ()
    try:
        settings = configuration.load()
        for warning in settings.warnings:
            click.echo(f"warning: {warning}")
        choice = resolve_model(settings)
        if choice is None:
            click.echo("warning: no model is configured: set a provider's key, or model.base_url")
        else:
            click.echo(f"model: {choice.model} ({choice.provider}, {hide(choice.base_url)})")
    except ConfigProblems as error:
        problems = error.problems
    except HermesError as error:
        problems = (str(error),)
    for problem in problems:
        click.echo(f"problem: {problem}")
    if problems:
        raise SystemExit(1)
    click.echo("ok")


@config.command()
@plainly
def path() -> None:
    """Print where config.yaml is."""
    click.echo(configuration.locate().config)


@config.command(name="migrate")
@plainly
def migrate_() -> None:
    """Write an older config.yaml in today's form, and keep a backup."""
    backup = migrate()
    click.echo(f"renewed; the file as it was is {backup}" if backup else "nothing to do")


def _shown(explanation: Explanation) -> object:
    return _masked(explanation.value, secret=explanation.secret)


def _masked(value: object, *, secret: bool) -> object:
    match value:
        case Path():
            return str(value)
        case str():
            return mask(value) if secret and value else hide(value)
        case _:
            return value


def _text(value: object) -> str:
    match value:
        case None | "" | ():
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
