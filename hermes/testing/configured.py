"""Finds the models that the settings select, with the same code as the application."""

from hermes.app.builtins import all_plugins, configured_models
from hermes.core.models.offers import OfferedModels
from hermes.core.models.resolver import ConfiguredModels
from hermes.settings import Settings


def models_of(settings: Settings) -> ConfiguredModels:
    """Returns the models of the settings, in an installation without plugins."""
    return configured_models(settings, all_plugins())


def offers_of(settings: Settings) -> OfferedModels:
    return OfferedModels(models_of(settings))
