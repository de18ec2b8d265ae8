"""Which model answers, as the settings and the environment say, and why it is that one."""

from pathlib import Path

import msgspec
from msgspec.structs import replace

from hermes.core.models.catalog import CUSTOM, LOCAL, MODEL_FILE, Catalog
from hermes.settings import Settings, schema
from hermes.settings.facts import Chosen, measured, overruled, source, variable
from hermes.settings.sources import CONFIG, DOTENV
from hermes.types.errors import ConfigError
from hermes.types.profile import ModelChoice
from hermes.types.providers import Provider
from hermes.types.value import Value

MAIN = ("", "auto", "main")
"""What `auxiliary.provider` says for the provider of the main model."""


NO_MODEL = """\
No model is configured. Set the key of a provider, as in
  hermes config set OPENROUTER_API_KEY KEY        (`hermes model list` names them all)
or any OpenAI-compatible endpoint and one of its models:
  hermes config set model.base_url http://127.0.0.1:11434/v1
  hermes model NAME
or take the small demo model, which runs on this machine:
  hermes model use local"""
"""What everybody is told where `resolve_model` finds none."""


class Wanted(Value):
    """What a section of the configuration asks for."""

    section: str
    provider: str
    model: str
    base_url: str
    api_key: str

    def __repr__(self) -> str:
        return f"Wanted(section={self.section!r})"


class Place(Value):
    """A provider, and what is not as usual there."""

    provider: Provider
    base_url: str = ""
    api_key: str = ""
    wire: str | None = None
    why: dict[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Place(provider={self.provider.name!r})"


def resolve_model(settings: Settings) -> ModelChoice | None:
    """The model that answers; None when nothing is configured, ConfigError when it can't work."""
    chosen = explain_model(settings)
    return chosen.choice if chosen else None


def resolve_auxiliary(settings: Settings) -> ModelChoice | None:
    """The model for summaries and titles; None when that is the main one's work too."""
    chosen = explain_auxiliary(settings)
    return chosen.choice if chosen else None


def resolve_fallbacks(settings: Settings) -> tuple[ModelChoice, ...]:
    """The models of `model.fallbacks`; ConfigError names the one that can't work."""
    choices = []
    for name in settings.model.fallbacks:
        try:
            choices.append(resolve_named(settings, name))
        except ConfigError as error:
            raise ConfigError(
                f"model.fallbacks, each as provider/model: {name!r} can't be used: {error}"
            ) from error
    return tuple(choices)


def resolve_named(settings: Settings, name: str) -> ModelChoice:
    """The model that a `provider/model` names; the provider alone means its default."""
    prefix, _, rest = name.partition("/")
    provider = Catalog.load().named(prefix)
    model = name if name == provider.default_model else rest or provider.default_model
    if not model:
        raise ConfigError(f"{name!r} names no model: write {prefix}/MODEL")
    main = _main(settings)
    if main is None or main.choice.provider != provider.name:
        return _chosen(settings, Place(provider=provider), model).choice
    if model == main.choice.model:
        return main.choice
    return _chosen(settings, _beside(main), model).choice


def explain_model(settings: Settings) -> Chosen | None:
    """The model that answers, with its reasons."""
    model = settings.model
    wanted = Wanted(
        section="model",
        provider=model.provider,
        model=model.default,
        base_url=model.base_url,
        api_key=model.api_key,
    )
    wanted, demo = _without_demo(settings, wanted)
    place = _place(settings, wanted)
    if place is None:
        return None
    if demo:
        reason = f"{place.why['provider']}, instead of the demo model of {demo}"
        place = replace(place, why={**place.why, "provider": reason})
    if model.wire != "auto":
        why = {**place.why, "wire": source(settings, "model.wire")}
        place = replace(place, wire=model.wire, why=why)
    named = place.provider.model(wanted.model)
    reason = source(settings, "model.default") if wanted.model else ""
    return overruled(settings, _chosen(settings, place, named, reason))


def _without_demo(settings: Settings, wanted: Wanted) -> tuple[Wanted, str]:
    """The demo model of config.yaml is a stand-in: the first key beats it. Where it was named."""
    catalog, local = Catalog.load(), Catalog.load().named(LOCAL)
    if (
        catalog.find(wanted.provider) != local
        or settings.sources.layer("model.provider") > CONFIG
        or wanted.model.endswith(MODEL_FILE)
        or wanted.base_url
        or catalog.auto(settings.sources.environ) is None
    ):
        return wanted, ""
    model = "" if local.model(wanted.model) == local.default_model else wanted.model
    return replace(wanted, provider="auto", model=model), source(settings, "model.provider")


def explain_auxiliary(settings: Settings) -> Chosen | None:
    """The model for summaries and titles, with its reasons; None without one of its own."""
    auxiliary = settings.auxiliary
    provider = "" if auxiliary.provider.casefold() in MAIN else auxiliary.provider
    if not (provider or auxiliary.base_url or auxiliary.model):
        return None
    wanted = Wanted(
        section="auxiliary",
        provider=provider,
        model=auxiliary.model,
        base_url=auxiliary.base_url,
        api_key=auxiliary.api_key,
    )
    main = None if auxiliary.base_url else _main(settings)
    if main and (not provider or _same(provider, main)):
        place, usual = _beside(main), main.choice.model
    else:
        found = _place(settings, wanted)
        if found is None:
            return None
        place, usual = found, ""
    model, reason = place.provider.small_model, f"the small model of {place.provider.label}"
    if auxiliary.model:
        model, reason = place.provider.model(auxiliary.model), source(settings, "auxiliary.model")
    elif not model:
        model, reason = place.provider.default_model or usual, ""
    return _chosen(settings, place, model, reason, "auxiliary.model")


def _same(provider: str, main: Chosen) -> bool:
    return Catalog.load().named(provider).name == main.choice.provider


def _main(settings: Settings) -> Chosen | None:
    try:
        return explain_model(settings)
    except ConfigError:
        # Whoever asks for another model can do without this one.
        return None


def _beside(main: Chosen) -> Place:
    """Where the main model is, for another of the same provider."""
    choice = main.choice
    return Place(
        provider=Catalog.load().named(choice.provider),
        base_url=choice.base_url,
        api_key=choice.api_key,
        wire=choice.wire,
        why={name: main.why[name] for name in _PLACED if name in main.why},
    )


_PLACED = ("provider", "base_url", "api_key", "wire")


def _place(settings: Settings, wanted: Wanted) -> Place | None:
    catalog, environ = Catalog.load(), settings.sources.environ

    def layer(name: str) -> int:
        return settings.sources.layer(f"{wanted.section}.{name}")

    def sources(*names: str) -> dict[str, str]:
        return {name: source(settings, f"{wanted.section}.{name}") for name in names}

    name = wanted.provider.casefold() or "auto"
    named = name not in ("auto", CUSTOM)
    chosen, addressed = layer("provider"), layer("base_url")
    if wanted.base_url and (not named or addressed >= max(DOTENV, chosen)):
        provider = catalog.at(wanted.base_url) or catalog.named(CUSTOM)
        # A key of config.yaml belongs to the address of config.yaml: no other may see it.
        own = addressed <= CONFIG or layer("api_key") >= DOTENV
        key = wanted.api_key if own else ""
        why = sources("base_url", "api_key") if key else sources("base_url")
        return Place(
            provider=provider,
            base_url=wanted.base_url,
            api_key=key,
            why={"provider": f"the address in {why['base_url']}", **why},
        )
    if named:
        provider, own = catalog.named(name), chosen <= CONFIG
        key = wanted.api_key if own and layer("api_key") <= CONFIG else ""
        key = "" if provider.key(environ) else key
        base_url = wanted.base_url if own else ""
        used = {"provider": name, "base_url": base_url, "api_key": key}
        why = sources(*(one for one, value in used.items() if value))
        return Place(provider=provider, base_url=base_url, api_key=key, why=why)
    if name == CUSTOM:
        raise ConfigError(
            f"{wanted.section}.provider is custom and {wanted.section}.base_url is empty: set it"
            f" in {settings.home.config}, or HERMES_CUSTOM_BASE_URL in {settings.home.dotenv}"
        )
    first = catalog.auto(environ, wanted.model)
    if first is None:
        return None
    found = first.key_name(environ)
    reason = f"the first key found, {variable(settings, found)}" if found else "a model file"
    return Place(provider=first, why={"provider": reason})


def _chosen(
    settings: Settings,
    place: Place,
    model: str,
    reason: str = "",
    setting: str = "model.default",
) -> Chosen:
    """The model at the place; `setting` is what names it, where none is named."""
    provider, environ, home = place.provider, settings.sources.environ, settings.home
    # The key of one custom endpoint is not for another.
    foreign = provider.name == CUSTOM and place.base_url
    key = place.api_key or ("" if foreign else provider.key(environ))
    if provider.key_required and not key:
        raise ConfigError(f"{provider.label} needs a key: set {provider.keys[0]} in {home.dotenv}")
    base_url = (place.base_url or provider.address(environ)).rstrip("/")
    if not base_url and provider.name != LOCAL:
        raise ConfigError(
            f"{provider.label} needs an address: set {provider.base_url_env[0]} in {home.dotenv}"
        )
    if not model:
        raise ConfigError(
            f"no model is named for {provider.label}: set {setting} in {home.config},"
            f" or {schema().field(setting).also.env[0]}"
        )
    if provider.name == LOCAL and model.endswith(MODEL_FILE):
        model = str(Path(model).expanduser())
    behaviour = Catalog.load().behaviour(provider, base_url)
    wire = place.wire or behaviour.wire
    choice = ModelChoice(
        provider=provider.name,
        model=model,
        base_url=base_url,
        api_key=key,
        wire=wire,
        # What a person chose may well drive tools; the small one that we bring can't.
        tools=provider.tools or model.endswith(MODEL_FILE),
        quirks=Catalog.load().quirks(behaviour, model, wire),
    )
    usual = f"usual for {provider.label}"
    found = {
        "provider": "named with the model",
        "model": reason or f"the default of {provider.label}",
        "base_url": variable(settings, provider.address_name(environ)) or usual,
        "api_key": variable(settings, provider.key_name(environ)),
        "wire": usual if behaviour == provider else "usual for another address",
    }
    why = {**found, **place.why}
    return measured(settings, provider, Chosen(choice=choice, why=why))
