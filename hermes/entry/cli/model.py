"""`hermes model`: shows, lists, tests and changes the model."""

from collections.abc import Iterable, Iterator
from functools import partial

import anyio
import click
import msgspec

from hermes import settings as configuration
from hermes.entry.cli.main import Commands, plainly
from hermes.entry.cli.runtime import Runtime
from hermes.entry.cli.trial import Trial
from hermes.entry.output import say, say_json
from hermes.settings import Settings
from hermes.settings.edit import set_value
from hermes.settings.sources import CONFIG
from hermes.text.redact import redact_tokens
from hermes.text.spelling import nearest
from hermes.types.errors import ConfigError, HermesError
from hermes.types.offers import ChosenModel, ModelName, ModelOffers, ProviderOffer
from hermes.types.profile import ModelChoice, Price
from hermes.types.providers import CUSTOM

ONE_EDIT = 0.75
"""Smallest similarity (from 0 to 1) of a command's name and the same name with one wrong letter or
with two letters in the wrong order."""


class ModelCommands(Commands):
    """A group of commands. A word that is not the name of a command is taken as the name of a
    model."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            word, near = args[0], nearest(args[0], self.list_commands(ctx), ONE_EDIT)
            if near and abs(len(near) - len(word)) <= 1 and "--force" not in args:
                ctx.fail(
                    f"{word!r} is no command of `hermes model`: did you mean `hermes model {near}`?"
                    " (to use a model with this name, add --force)"
                )
            args = ["use", *args]
        return super().parse_args(ctx, args)


@click.command(cls=ModelCommands, default="show")
def model() -> None:
    """Show and change the model that answers.

    \b
    hermes model                            the current model, and its source
    hermes model gpt-5.6-luna               another model of the same provider
    hermes model groq/openai/gpt-oss-120b   another provider too
    hermes model ~/models/qwen.gguf         a model file, on this machine
    hermes model list groq                  the models of a provider
    hermes model test                       whether it works, its speed and its cost
    """


@model.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
@plainly
def show(runtime: Runtime, as_json: bool) -> None:
    """Show the model that answers, and why."""
    models = runtime.models(configuration.load())
    chosen = models.explain_main()
    if chosen is None:
        say(models.advice, err=True)
        raise SystemExit(1)
    auxiliary, fallbacks = models.explain_auxiliary(), models.fallbacks()
    if as_json:
        beside = {
            "auxiliary": _described(auxiliary.choice) if auxiliary else None,
            "fallbacks": [_described(one) for one in fallbacks],
        }
        say_json(_json({**_described(chosen.choice), "why": chosen.sources, **beside}))
        return
    rows = [*_rows(chosen)]
    if auxiliary:
        rows.append(("summaries", _name(auxiliary.choice), auxiliary.sources["model"]))
    else:
        rows.append(("summaries", "the same model", "auxiliary.* is empty"))
    rows += [("fallback", _name(one), "model.fallbacks") for one in fallbacks]
    for label, value, why in rows:
        say(f"{label:<10} {value}" + (f"  ({why})" if why else ""))


@model.command()
@click.argument("name", metavar="ID")
@click.option("--provider", default="", help="The provider, if ID does not name it.")
@click.option("--force", is_flag=True, help="Accept a model that is not in the provider's list.")
@click.pass_obj
@plainly
def use(runtime: Runtime, name: str, provider: str, force: bool) -> None:
    """Use another model.

    ID is a model of the configured provider, `provider/model`, or the path of a GGUF file. The name
    is checked against the stored list of the provider, if there is one. No network is needed.
    """
    settings = configuration.load()
    offers = runtime.offers(settings)
    meant = offers.read_name(name, provider)
    if not force and (reason := offers.why_unlikely(meant)):
        raise ConfigError(f"{reason} (to use this name anyway, add --force)")
    changes, left = [("model.default", meant.model)], offers.used()
    if offers.changes_provider(meant):
        custom = left is not None and left.provider == CUSTOM
        leaving = _leaving(settings, meant, custom=custom)
        changes = [*leaving, ("model.provider", meant.provider), *changes]
    for key, value in changes:
        change = set_value(key, value)
        say(f"{change.name} = {redact_tokens(value)}" if value else f"{change.name} is removed")
        if change.backup:
            say(f"comments were not kept: the original file is {change.backup}")
        if change.overruled_by:
            say(f"note: {change.overruled_by} overrides it", err=True)
        if change.name == "model.custom_base_url" and left:
            say(f"`hermes model {CUSTOM}/{left.model}` switches back")
    _confirm(runtime, meant)


def _leaving(settings: Settings, meant: ModelName, *, custom: bool) -> list[tuple[str, str]]:
    """Returns the changes of settings that remove the configured address. The new provider must not
    be called at this address.

    The address of a `custom` endpoint is saved under another name, so that the user can switch
    back. Raises ConfigError if config.yaml contains an API key, because the key would be sent to
    the new provider.
    """
    if settings.sources.layer("model.api_key") == CONFIG:
        raise ConfigError(
            f"{settings.home.config} has a model.api_key, which would be sent to {meant.provider}:"
            " remove it from the file first"
        )
    address = settings.model.base_url
    written = settings.sources.layer("model.base_url") == CONFIG and address
    if not written or meant.provider == CUSTOM:
        return []
    kept = [("model.custom_base_url", address)] if custom else []
    return [*kept, ("model.base_url", "")]


def _confirm(runtime: Runtime, meant: ModelName) -> None:
    try:
        models = runtime.models(configuration.load())
        chosen = models.explain_main()
    except ConfigError as error:
        say(f"note: {error}", err=True)
        return
    if chosen is None:
        say(f"note: {models.advice}", err=True)
        return
    say(f"{_name(chosen.choice)} is selected; a running gateway uses it after a restart")
    if meant.provider and meant.provider != chosen.choice.provider:
        say(f"note: it is chosen by {chosen.sources['provider']}", err=True)


@model.command(name="list")
@click.argument("provider", required=False)
@click.option("--refresh", is_flag=True, help="Request the lists now, instead of once a day.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
@plainly
def list_(runtime: Runtime, provider: str | None, refresh: bool, as_json: bool) -> None:
    """List providers and their models.

    Without PROVIDER: all providers, whether each has its key, and their known models.
    """
    settings = configuration.load()
    offers = runtime.offers(settings)
    shown = [offers.of(provider)] if provider else list(offers.all())
    if provider or refresh:
        endpoints = [shown[0].endpoint] if provider else offers.endpoints()
        anyio.run(_refresh, runtime, settings, endpoints, refresh)
    if provider and not offers.models(shown[0].name):
        raise ConfigError(f"{shown[0].label}: no list of models is available")
    if as_json:
        say_json(_json({"providers": [_described_offer(offers, one) for one in shown]}))
        return
    width = max(len(_state(one)) for one in shown)
    for one in [] if provider else shown:
        say(f"{one.name:<14} {_state(one):<{width}}  {one.label}")
    for one in shown:
        for choice in offers.models(one.name):
            say("  ".join((f"{one.name}/{choice.model}", *_facts(choice))))


def _state(one: ProviderOffer) -> str:
    if one.ready:
        return "ready" if one.key else "needs no key"
    return f"no key (set {one.key})" if one.key else "no address (set model.base_url)"


async def _refresh(
    runtime: Runtime, settings: Settings, endpoints: Iterable[ModelChoice | None], fresh: bool
) -> None:
    for endpoint in endpoints:
        try:
            if endpoint is not None:
                await runtime.refresh_models(settings, endpoint, fresh=fresh)
        except HermesError as error:
            say(f"note: {error}", err=True)


@model.command()
@click.argument("name", required=False, metavar="[ID]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def test(runtime: Runtime, name: str | None, as_json: bool) -> None:
    """Send a model one small question.

    Shows the answer, its duration and its cost. The exit code is 1 if there is no answer.
    """
    try:
        settings = configuration.load()
        choice = _wanted(runtime, settings, name)
        trial = Trial()
        anyio.run(trial.run, partial(runtime.call_model, settings), choice)
    except HermesError as error:
        if as_json:
            say_json(_json({"error": str(error)}))
        else:
            say(error, err=True)
        raise SystemExit(1) from None
    if as_json:
        say_json(_json({**_described(choice), **trial.measured()}))
        return
    say(f"{_name(choice)} says: {trial.text}")
    say(f"first word after {trial.first:.2f} s, all after {trial.total:.2f} s")
    if usage := trial.usage:
        cost = "cost not known" if usage.cost is None else f"${usage.cost:.6f}"
        read, written = usage.prompt_tokens, usage.completion_tokens
        say(f"{read} tokens read, {written} written, {cost}")


def _wanted(runtime: Runtime, settings: Settings, name: str | None) -> ModelChoice:
    models = runtime.models(settings)
    meant = runtime.offers(settings).read_name(name) if name else None
    if meant and meant.provider:
        return models.named(f"{meant.provider}/{meant.model}")
    main = models.main()
    if main is None:
        raise ConfigError(models.advice)
    return models.named(f"{main.provider}/{meant.model}") if meant else main


def _rows(chosen: ChosenModel) -> Iterator[tuple[str, str, str]]:
    choice, why = chosen.choice, chosen.sources
    yield "model", choice.model, why["model"]
    yield "provider", choice.provider, why["provider"]
    yield "address", redact_tokens(choice.base_url) or "this machine", why["base_url"]
    yield "key", "set" if choice.api_key else "none", why["api_key"]
    yield "wire", choice.wire, why["wire"]
    assumed = "assumed; model.context_length sets another"
    yield "window", f"{choice.window:,} tokens", why.get("context_length", assumed)
    if choice.max_tokens:
        yield "answers", f"up to {choice.max_tokens:,} tokens", why["max_tokens"]
    yield "price", _priced(choice.price) or "not known", why.get("price", "")


def _name(choice: ModelChoice) -> str:
    return f"{choice.model} of {choice.provider}"


def _priced(price: Price | None) -> str:
    if price is None:
        return ""
    cached = "" if price.cached is None else f", ${price.cached:g} cached"
    return f"${price.input:g} read, ${price.output:g} written{cached}, a million tokens"


def _facts(choice: ModelChoice) -> Iterator[str]:
    yield f"{choice.window:,} tokens" + (" (assumed)" * (choice.context_length is None))
    if price := _priced(choice.price):
        yield price


def _described(choice: ModelChoice) -> dict[str, object]:
    return {
        "provider": choice.provider,
        "model": choice.model,
        "base_url": redact_tokens(choice.base_url),
        "wire": choice.wire,
        "context_length": choice.window,
        "max_tokens": choice.max_tokens,
        "price": choice.price,
        "tools": choice.tools,
    }


def _described_offer(offers: ModelOffers, one: ProviderOffer) -> dict[str, object]:
    known = [
        {"id": choice.model, "context_length": choice.window, "price": choice.price}
        for choice in offers.models(one.name)
    ]
    return {
        "name": one.name,
        "label": one.label,
        "ready": one.ready,
        "key": one.key,
        "default_model": one.default_model,
        "models": known,
    }


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
