"""Which model answers, as the settings and the environment say."""

from hermes.core.models.catalog import CUSTOM, Catalog, Provider
from hermes.settings import Settings
from hermes.settings.sources import CONFIG, DOTENV
from hermes.types.errors import ConfigError
from hermes.types.profile import ModelChoice


def resolve_model(settings: Settings) -> ModelChoice | None:
    """The model that answers; None when nothing is configured, ConfigError when it can't work."""
    model, layer = settings.model, settings.sources.layer
    catalog = Catalog.load()
    name = model.provider.casefold() or "auto"
    named = name not in ("auto", CUSTOM)
    chosen, addressed = layer("model.provider"), layer("model.base_url")
    if model.base_url and (not named or addressed >= max(DOTENV, chosen)):
        provider = catalog.at(model.base_url) or catalog.named(CUSTOM)
        # A key of config.yaml belongs to the address of config.yaml: no other may see it.
        own = addressed <= CONFIG or layer("model.api_key") >= DOTENV
        return _choice(settings, provider, model.base_url, model.api_key if own else "")
    if named:
        provider, own = catalog.named(name), chosen <= CONFIG
        key = model.api_key if own and layer("model.api_key") <= CONFIG else ""
        key = provider.key(settings.sources.environ) or key
        return _choice(settings, provider, model.base_url if own else "", key)
    if name == CUSTOM:
        raise ConfigError(
            f"model.provider is custom and model.base_url is empty: set it in"
            f" {settings.home.config}, or HERMES_CUSTOM_BASE_URL in {settings.home.dotenv}"
        )
    first = catalog.auto(settings.sources.environ, model.default)
    return _choice(settings, first, "", "") if first else None


def _choice(settings: Settings, provider: Provider, base_url: str, api_key: str) -> ModelChoice:
    environ = settings.sources.environ
    key = api_key or provider.key(environ)
    if provider.key_required and not key:
        raise ConfigError(
            f"{provider.label} needs a key: set {provider.keys[0]} in {settings.home.dotenv}"
        )
    model = provider.model(settings.model.default)
    if not model:
        raise ConfigError(
            f"no model is named for {provider.label}: set model.default in {settings.home.config},"
            " or HERMES_MODEL"
        )
    return ModelChoice(
        provider=provider.name,
        model=model,
        base_url=(base_url or provider.address(environ)).rstrip("/"),
        api_key=key,
        context_length=settings.model.context_length,
    )
