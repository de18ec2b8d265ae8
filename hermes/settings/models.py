"""Converts the settings about models for core/models, and explains the variables of providers."""

from hermes.core.models.catalog import Catalog
from hermes.core.models.model_config import (
    EndpointConfig,
    ModelConfig,
    SettingLayer,
    SettingSource,
)
from hermes.settings import Settings, schema
from hermes.settings.sources import Explanation, Sources

_SECTIONS = ("model.", "auxiliary.")


def model_config(settings: Settings) -> ModelConfig:
    """Returns all settings about models, and the place that each value comes from."""
    model, auxiliary, home, sources = (
        settings.model,
        settings.auxiliary,
        settings.home,
        settings.sources,
    )
    return ModelConfig(
        main=EndpointConfig(
            section="model",
            provider=model.provider,
            model=model.default,
            base_url=model.base_url,
            api_key=model.api_key,
            key_address=_key_address(sources, "model") or model.custom_base_url,
        ),
        auxiliary=EndpointConfig(
            section="auxiliary",
            provider=auxiliary.provider,
            model=auxiliary.model,
            base_url=auxiliary.base_url,
            api_key=auxiliary.api_key,
            key_address=_key_address(sources, "auxiliary"),
        ),
        wire=model.wire.casefold() or "auto",
        fallbacks=model.fallbacks,
        custom_base_url=model.custom_base_url,
        context_length=model.context_length,
        max_tokens=model.max_tokens,
        attachments=model.attachments,
        input_price=model.input_price,
        output_price=model.output_price,
        sources={
            key: SettingSource(layer=SettingLayer(found[-1].layer), text=found[-1].source)
            for key, found in sources.found.items()
            if key.startswith(_SECTIONS)
        },
        variables={
            key: field.aliases.env[0]
            for key, field in schema().fields.items()
            if key.startswith(_SECTIONS) and field.aliases.env
        },
        environ=sources.environ,
        process=frozenset(sources.process),
        config_file=home.config,
        dotenv_file=home.dotenv,
        models=home.models,
        cache=home.root / "cache" / "models",
    )


def _key_address(sources: Sources, section: str) -> str:
    layer = sources.layer(f"{section}.api_key")
    found = sources.found.get(f"{section}.base_url", ())
    return next((str(one.value) for one in reversed(found) if one.layer <= layer), "")


def explain(settings: Settings, key: str) -> Explanation:
    """Returns the value of a setting or of a provider's variable, and the place that the value
    comes from."""
    catalog = Catalog.load()
    if key in schema().variables or key not in catalog.variables:
        return settings.explain(key)
    value = settings.sources.environ.get(key, "")
    return Explanation(
        key=key,
        value=value,
        source=model_config(settings).variable_source(key) if value else "default",
        secret=any(key in provider.keys for provider in catalog.providers),
    )
