"""`hermes config`: shows, explains and changes the settings."""

from pathlib import Path

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.entry.cli.main import Commands, plainly
from hermes.entry.cli.runtime import Runtime
from hermes.entry.output import say, say_json, say_unwrapped
from hermes.settings.edit import Change, migrate, set_value, unset_value
from hermes.settings.known_settings import KnownSettings
from hermes.settings.sources import ConfigProblems, Explanation
from hermes.text.redact import mask, redact_tokens
from hermes.types.errors import HermesError

EMPTY = "nothing"
"""The text that is shown in place of an empty value."""


@click.command(cls=Commands, default="show")
def config() -> None:
    """Show, explain and change the configuration. Without a command: `hermes config show`.

    \b
    hermes config set ANTHROPIC_API_KEY sk-…
    hermes config set TELEGRAM_BOT_TOKEN 110201543:AAH…
    hermes config set model.context_length 16384
    hermes config explain model.default
    hermes config unset ANTHROPIC_API_KEY
    """


@config.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
@plainly
def show(runtime: Runtime, as_json: bool) -> None:
    """Show every setting. Settings of chat platforms are shown only if they are set."""
    settings = configuration.load()
    values = {key: _shown(settings.explain(key)) for key in settings.keys()}  # noqa: SIM118
    own = KnownSettings(runtime.platforms).explain_platforms(settings)
    values |= {one.key: _shown(one) for one in own}
    if as_json:
        say_json(_json(values))
        return
    say(f"# {settings.home.config}")
    for key, value in values.items():
        say_unwrapped(f"{key} = {_text(value)}")


@config.command()
@click.argument("key")
@click.option("--reveal", is_flag=True, help="Print a secret in full, for a script.")
@click.pass_obj
@plainly
def get(runtime: Runtime, key: str, reveal: bool) -> None:
    """Print the value of KEY, a setting or a variable. A secret is masked."""
    explanation = KnownSettings(runtime.platforms).explain(configuration.load(), key)
    say_unwrapped(_text(explanation.value if reveal else _shown(explanation)))


# A negative number is a value, not an option.
@config.command(name="set", context_settings={"ignore_unknown_options": True})
@click.argument("key")
@click.argument("value")
@click.pass_obj
@plainly
def set_(runtime: Runtime, key: str, value: str) -> None:
    """Set KEY to VALUE in config.yaml. Secrets and variables are written to .env."""
    change = set_value(key, value, known=KnownSettings(runtime.platforms))
    say(f"{change.name} is set in {change.path}")
    _tell_backup(change)
    if change.overruled_by:
        say(f"note: {change.overruled_by} overrides it", err=True)
    _tell_restart(runtime)


@config.command()
@click.argument("key")
@click.pass_obj
@plainly
def unset(runtime: Runtime, key: str) -> None:
    """Remove KEY from config.yaml and .env."""
    changes = unset_value(key, known=KnownSettings(runtime.platforms))
    for change in changes:
        say(f"{change.name} is removed from {change.path}")
        _tell_backup(change)
    if left := changes[-1].overruled_by:
        say(f"note: {left} still sets it", err=True)
    _tell_restart(runtime)


def _tell_restart(runtime: Runtime) -> None:
    if runtime.running_gateways(configuration.locate().run):
        say("note: the running gateway uses it after a restart", err=True)


def _tell_backup(change: Change) -> None:
    if change.backup:
        say(f"comments were not kept: the original file is {change.backup}")


@config.command()
@click.argument("key")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
@plainly
def explain(runtime: Runtime, key: str, as_json: bool) -> None:
    """Show where the value of KEY comes from, and which other values it overrides."""
    explanation = KnownSettings(runtime.platforms).explain(configuration.load(), key)
    shadowed = [
        {"source": source, "value": _masked(value, secret=explanation.secret)}
        for source, value in explanation.shadowed
    ]
    shown = {"key": explanation.key, "value": _shown(explanation), "source": explanation.source}
    if as_json:
        say_json(_json({**shown, "shadowed": shadowed}))
        return
    say(f"{explanation.key} = {_text(shown['value']) or EMPTY}  ({explanation.source})")
    for one in shadowed:
        say(f"  instead of {_text(one['value']) or EMPTY}  ({one['source']})")


@config.command()
@click.pass_obj
def check(runtime: Runtime) -> None:
    """Check the configuration. The exit code is 1 if something is wrong."""
    problems: tuple[str, ...] = ()
    try:
        settings = configuration.load()
        for warning in (*settings.sources.ignored, *settings.warnings):
            say(f"warning: {warning}")
        if unused := runtime.unused_data(settings):
            say(f"warning: data of Hermes Agent is not used: {unused}")
        choice = runtime.models(settings).main()
        if choice is None:
            say("warning: no model is configured: set a provider's key, or model.base_url")
        else:
            where = filter(None, (choice.provider, redact_tokens(choice.base_url)))
            say(f"model: {choice.model} ({', '.join(where)})")
        for warning in anyio.run(runtime.check, settings):
            say(f"warning: {warning}")
    except ConfigProblems as error:
        problems = error.problems
    except HermesError as error:
        problems = (str(error),)
    for problem in problems:
        say(f"problem: {problem}")
    if problems:
        raise SystemExit(1)
    say("ok")


@config.command()
@plainly
def path() -> None:
    """Print the path of config.yaml."""
    say_unwrapped(configuration.locate().config)


@config.command(name="migrate")
@plainly
def migrate_() -> None:
    """Convert an older config.yaml to the present format, and keep a backup."""
    backup = migrate()
    say(f"converted; the original file is {backup}" if backup else "nothing to do")


def _shown(explanation: Explanation) -> object:
    return _masked(explanation.value, secret=explanation.secret)


def _masked(value: object, *, secret: bool) -> object:
    match value:
        case Path():
            return str(value)
        case str():
            return mask(value) if secret and value else redact_tokens(value)
        case dict() if secret:
            return {name: _masked(text, secret=True) for name, text in value.items()}
        case _:
            return value


def _text(value: object) -> str:
    match value:
        case None | "" | ():
            return ""
        case dict():
            return ",".join(f"{name}={text}" for name, text in value.items())
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
