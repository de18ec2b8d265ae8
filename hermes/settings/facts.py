"""What is known of a chosen model: its window, its price, and who says so."""

from msgspec.structs import replace

from hermes.core.models.catalog import Catalog, Provider
from hermes.core.models.lists import Lists
from hermes.settings import Settings, schema
from hermes.settings.sections import ModelSettings
from hermes.settings.sources import Explanation
from hermes.types.profile import ModelChoice, Price
from hermes.types.value import Value


class Chosen(Value):
    """A model, and where each thing about it comes from."""

    choice: ModelChoice
    why: dict[str, str]
    """By field of the choice; what is not known has none."""


def lists(settings: Settings) -> Lists:
    """What providers said about their models."""
    return Lists(settings.home.root / "cache" / "models")


def source(settings: Settings, key: str) -> str:
    """Who gave the setting its value."""
    return settings.explain(key).source


def variable(settings: Settings, name: str) -> str:
    """Where a variable of the environment is set; nothing for nothing."""
    if not name:
        return ""
    inside = name not in settings.sources.process
    return f"{settings.home.dotenv} {name}" if inside else f"environment {name}"


def explain(settings: Settings, key: str) -> Explanation:
    """What a setting or a provider's variable says, and who gave it."""
    catalog = Catalog.load()
    if schema().named_by(key) or key not in catalog.variables:
        return settings.explain(key)
    value = settings.sources.environ.get(key, "")
    return Explanation(
        key=key,
        value=value,
        source=variable(settings, key) if value else "default",
        secret=any(key in provider.keys for provider in catalog.providers),
    )


def measured(settings: Settings, provider: Provider, chosen: Chosen) -> Chosen:
    """With the window and the price, where the provider's list or our tables have them."""
    choice, why = chosen.choice, dict(chosen.why)
    listed, family = lists(settings).find(choice), Catalog.load().family(choice.model)
    lengths = {
        f"the list of {provider.label}": listed and listed.context_length,
        "the table of models": family and family.context_length,
        f"usual for {provider.label}": provider.context_length,
    }
    prices = {
        f"the list of {provider.label}": listed and listed.price,
        "the table of models": family and family.price,
    }
    for where, length in lengths.items():
        if length and choice.context_length is None:
            choice, why["context_length"] = replace(choice, context_length=length), where
    for where, price in prices.items():
        if price and choice.price is None:
            choice, why["price"] = replace(choice, price=price), where
    return Chosen(choice=choice, why=why)


def overruled(settings: Settings, chosen: Chosen) -> Chosen:
    """With what the settings say about the model itself."""
    model, choice, why = settings.model, chosen.choice, dict(chosen.why)
    if model.context_length is not None:
        choice = replace(choice, context_length=model.context_length)
        why["context_length"] = source(settings, "model.context_length")
    if model.max_tokens is not None:
        choice = replace(choice, max_tokens=model.max_tokens)
        why["max_tokens"] = source(settings, "model.max_tokens")
    for key in ("input_price", "output_price"):
        if source(settings, f"model.{key}") != "default":
            choice = replace(choice, price=_priced(model, chosen.choice.price))
            why["price"] = source(settings, f"model.{key}")
    return Chosen(choice=choice, why=why)


def _priced(model: ModelSettings, known: Price | None) -> Price | None:
    read, written, cached = model.input_price, model.output_price, None
    if known and read is None:
        read, cached = known.input, known.cached
    if known and written is None:
        written = known.output
    if read is None or written is None:
        return None
    return Price(input=read, output=written, cached=cached)
