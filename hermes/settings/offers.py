"""What could be chosen: the providers, their models as far as we have heard, and how to say it."""

from pathlib import Path

from msgspec.structs import replace

from hermes.core.models.catalog import CUSTOM, LOCAL, MODEL_FILE, Catalog
from hermes.settings import Settings
from hermes.settings.facts import lists
from hermes.settings.models import resolve_model
from hermes.text.spelling import did_you_mean
from hermes.types.errors import ConfigError
from hermes.types.profile import ModelChoice
from hermes.types.providers import Provider
from hermes.types.value import Value


class Offer(Value):
    """A provider, as a person chooses among them."""

    name: str
    label: str
    default_model: str
    key: str
    """The variable for its key; empty where it needs none."""
    ready: bool
    """Nothing is missing to ask it."""
    place: ModelChoice | None = None
    """Where its list of models can be asked for."""


class Name(Value):
    """A model as it goes into the configuration."""

    model: str
    provider: str = ""
    """Empty where the configured one stays."""


def offers(settings: Settings) -> tuple[Offer, ...]:
    """Every provider, in the order in which `auto` looks at them."""
    used = _used(settings)
    return tuple(_offer(settings, one, used) for one in Catalog.load().providers)


def offer(settings: Settings, provider: str) -> Offer:
    """One provider; ConfigError with the nearest name for an unknown one."""
    return _offer(settings, Catalog.load().named(provider), _used(settings))


def places(settings: Settings) -> tuple[ModelChoice, ...]:
    """Where lists of models can be asked for: all that have a key, and the provider in use."""
    used = _used(settings)
    return tuple(
        one.place
        for one in offers(settings)
        if one.place and one.ready and (one.key or (used and used.provider == one.name))
    )


def listed(settings: Settings, place: ModelChoice) -> tuple[ModelChoice, ...]:
    """The models of the list that was last asked for there; none without a list."""
    kept = lists(settings).last(place)
    return tuple(
        replace(place, model=one.id, context_length=one.context_length, price=one.price)
        for one in (kept.models if kept else ())
    )


def models(settings: Settings, provider: str) -> tuple[ModelChoice, ...]:
    """The models of a provider, as far as we have heard; of this machine, those that are here."""
    if provider == LOCAL:
        here = _here(settings)
        return tuple(ModelChoice(provider=LOCAL, model=name, base_url="") for name in here)
    place = offer(settings, provider).place
    return listed(settings, place) if place else ()


def demo_is_here(settings: Settings) -> bool:
    """Whether the demo model needs no download."""
    from hermes.core.models.download import SMOLLM2  # noqa: PLC0415  # slow, and rarely needed

    return SMOLLM2.present(settings.home.models)


def _here(settings: Settings) -> tuple[str, ...]:
    """The demo model, and the model files that are in the home."""
    from hermes.core.models.download import SMOLLM2  # noqa: PLC0415  # slow, and rarely needed

    folder, demo = settings.home.models, Catalog.load().named(LOCAL).default_model
    files = {file for file in folder.glob(f"*{MODEL_FILE}") if file.is_file()}
    return demo, *sorted(file.name for file in files - {SMOLLM2.path(folder)})


def read_name(settings: Settings, name: str, provider: str = "") -> Name:
    """What a person means by `model`, `provider/model`, `provider` or a model file."""
    catalog = Catalog.load()
    if not name.endswith(MODEL_FILE) and (len(name.split()) != 1 or name.endswith("/")):
        raise ConfigError(f"{name!r} is not the name of a model")
    if provider:
        return Name(model=name, provider=catalog.named(provider).name)
    if name.endswith(MODEL_FILE):
        path = Path(name.removeprefix(f"{LOCAL}/")).expanduser()
        return Name(model=str(path.absolute() if path.is_file() else path), provider=LOCAL)
    prefix, _, rest = name.partition("/")
    meant = catalog.find(prefix)
    if name == prefix and meant is not None and meant.default_model:
        return Name(model=meant.default_model, provider=meant.name)
    if not rest or meant is None or _is_vendor(settings, meant, name):
        return Name(model=name, provider=_instead_of_demo(settings))
    return Name(model=name if name == meant.default_model else rest, provider=meant.name)


def _instead_of_demo(settings: Settings) -> str:
    """The provider that must be written down, where a key beats the demo model of config.yaml."""
    choice = _used(settings)
    demo = Catalog.load().find(settings.model.provider) == Catalog.load().named(LOCAL)
    return choice.provider if choice and demo and choice.provider not in (LOCAL, CUSTOM) else ""


def _is_vendor(settings: Settings, meant: Provider, name: str) -> bool:
    """Whether `openai/gpt-x` is the name of a model at the provider in use, such as OpenRouter."""
    choice, environ = _used(settings), settings.sources.environ
    used = Catalog.load().find(choice.provider) if choice else None
    if not (choice and used and used.vendor_names) or used == meant or name.count("/") > 1:
        return False
    names = {one.model for one in listed(settings, choice)}
    maker = meant.key_required and not meant.vendor_names
    return name in names or not meant.ready(environ) or (maker and not names)


def moves(settings: Settings, name: Name) -> bool:
    """Whether the model is at another provider than the configured one."""
    configured = Catalog.load().find(settings.model.provider)
    return bool(name.provider) and (configured is None or configured.name != name.provider)


def doubt(settings: Settings, name: Name) -> str:
    """Why the model is probably not there, as a sentence; nothing where all seems well."""
    choice = _used(settings)
    provider = name.provider or (choice.provider if choice else "")
    names = [one.model for one in models(settings, provider)] if provider else []
    if provider == LOCAL and name.model not in names:
        path = settings.home.models / Path(name.model).expanduser()
        if name.model.endswith(MODEL_FILE) and path.is_file():
            return ""
        there = ", ".join(names)
        return (
            f"there is no model file {name.model!r}: here are {there}, or name a .gguf by its path"
        )
    if not names or name.model in names:
        return ""
    return f"{provider} does not list {name.model!r}{did_you_mean(name.model, names, 0.4)}"


def _used(settings: Settings) -> ModelChoice | None:
    try:
        return resolve_model(settings)
    except ConfigError:
        return None


def _offer(settings: Settings, provider: Provider, used: ModelChoice | None) -> Offer:
    environ = settings.sources.environ
    address = provider.address(environ).rstrip("/")
    behaviour = Catalog.load().behaviour(provider, address)
    place = ModelChoice(
        provider=provider.name,
        model="",
        base_url=address,
        api_key=provider.key(environ),
        wire=behaviour.wire,
        quirks=behaviour.quirks,
    )
    if used and used.provider == provider.name:
        place = used
    return Offer(
        name=provider.name,
        label=provider.label,
        default_model=provider.default_model,
        key=provider.keys[0] if provider.key_required else "",
        ready=provider.ready(environ) or place is used,
        place=place if place.base_url else None,
    )
