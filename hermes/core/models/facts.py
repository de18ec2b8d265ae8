"""Finds the context length, price and accepted attachments of a model, and records where each fact
comes from."""

from typing import get_args

from msgspec.structs import replace

from hermes.core.models.catalog import Catalog
from hermes.core.models.model_cache import ListedModel
from hermes.core.models.model_config import ModelConfig, SettingLayer
from hermes.types.errors import ConfigError
from hermes.types.messages import AttachmentKind
from hermes.types.offers import ChosenModel
from hermes.types.profile import Price
from hermes.types.providers import Provider


def with_known_facts(
    catalog: Catalog, listed: ListedModel | None, provider: Provider, chosen: ChosenModel
) -> ChosenModel:
    """Returns the chosen model with the facts that are still missing. Each fact comes from the
    first source that has it: the provider's list (`listed`), then our table of models, then our
    table of providers."""
    choice, sources = chosen.choice, dict(chosen.sources)
    family = catalog.family(choice.model)
    lengths = {
        f"the list of {provider.label}": listed and listed.context_length,
        "the table of models": family and family.context_length,
        f"usual for {provider.label}": provider.context_length,
    }
    prices = {
        f"the list of {provider.label}": listed and listed.price,
        "the table of models": family and family.price,
    }
    accepted = {
        f"the list of {provider.label}": listed.attachments if listed else None,
        "the table of models": catalog.accepted(choice.model),
        f"usual for {provider.label}": provider.attachments,
    }
    for where, length in lengths.items():
        if length and choice.context_length is None:
            choice, sources["context_length"] = replace(choice, context_length=length), where
    for where, price in prices.items():
        if price and choice.price is None:
            choice, sources["price"] = replace(choice, price=price), where
    for where, kinds in accepted.items():
        if kinds is not None and choice.attachments is None:
            choice, sources["attachments"] = replace(choice, attachments=kinds), where
    return ChosenModel(choice=choice, sources=sources)


def with_settings(config: ModelConfig, chosen: ChosenModel) -> ChosenModel:
    """Returns the model with the facts that the settings state. A setting takes precedence over
    the provider's list of models and over our tables."""
    choice, sources = chosen.choice, dict(chosen.sources)
    if config.context_length is not None:
        choice = replace(choice, context_length=config.context_length)
        sources["context_length"] = config.source("model.context_length")
    if config.max_tokens is not None:
        choice = replace(choice, max_tokens=config.max_tokens)
        sources["max_tokens"] = config.source("model.max_tokens")
    if config.attachments is not None:
        choice = replace(choice, attachments=_kinds(config.attachments))
        sources["attachments"] = config.source("model.attachments")
    for key in ("model.input_price", "model.output_price"):
        if config.layer(key) > SettingLayer.DEFAULT:
            choice = replace(choice, price=_price(config, chosen.choice.price))
            sources["price"] = config.source(key)
    return ChosenModel(choice=choice, sources=sources)


def _kinds(words: tuple[str, ...]) -> tuple[AttachmentKind, ...]:
    """Returns the kinds of attachments that a setting names. Raises ConfigError for other words."""
    known: tuple[AttachmentKind, ...] = get_args(AttachmentKind)
    for word in words:
        if word not in known:
            raise ConfigError(f"model.attachments: {word!r} is not one of {', '.join(known)}")
    return tuple(kind for kind in known if kind in words)


def _price(config: ModelConfig, known: Price | None) -> Price | None:
    """Returns the configured price. A part of the price that is not configured comes from `known`.
    Returns None if a part is neither configured nor known."""
    read, written, cached = config.input_price, config.output_price, None
    if known and read is None:
        read, cached = known.input, known.cached
    if known and written is None:
        written = known.output
    if read is None or written is None:
        return None
    return Price(input=read, output=written, cached=cached)
