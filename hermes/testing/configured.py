"""The models of some settings, as the application resolves them."""

from hermes.core.models.offers import OfferedModels
from hermes.core.models.resolver import ConfiguredModels
from hermes.settings import Settings
from hermes.settings.models import model_config


def models_of(settings: Settings) -> ConfiguredModels:
    return ConfiguredModels(model_config(settings))


def offers_of(settings: Settings) -> OfferedModels:
    return OfferedModels(models_of(settings))
