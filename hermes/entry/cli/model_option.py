"""Applies the model that the command line of `hermes chat` names, for that chat only."""

from collections.abc import Mapping

from hermes import settings as configuration
from hermes.entry.cli.runtime import Runtime
from hermes.settings import Settings, schema
from hermes.types.errors import ConfigError
from hermes.types.providers import CUSTOM


def with_model(
    settings: Settings, runtime: Runtime, name: str, environ: Mapping[str, str]
) -> Settings:
    """Returns settings that use the named model. If the model can't be used, raises a ConfigError
    that says why.

    The name has the same form as in `hermes model`: `model`, `provider/model`, `provider` or a
    model file.
    """
    offers = runtime.offers(settings)
    meant = offers.read_name(name)
    if reason := offers.why_unlikely(meant):
        raise ConfigError(reason)
    changed = {**environ, "HERMES_MODEL": meant.model}
    if meant.provider:
        changed["HERMES_INFERENCE_PROVIDER"] = meant.provider
    if meant.provider not in ("", CUSTOM):
        for variable in schema().field("model.base_url").aliases.env:
            changed.pop(variable, None)
    chosen = configuration.load(settings.home.root, changed)
    models = runtime.models(chosen)
    if models.main() is None:
        raise ConfigError(models.advice)
    return chosen
