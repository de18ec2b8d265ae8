"""The configured models, and the models that a person could choose, for the command line."""

from typing import Protocol

from hermes.types.profile import ModelChoice
from hermes.types.value import Value


class ChosenModel(Value):
    """A model, and where each of its properties comes from."""

    choice: ModelChoice
    sources: dict[str, str]
    """Maps each field of the choice to a text that tells people where the field's value comes from.
    A field is left out if the origin of its value is not known."""


class ProviderOffer(Value):
    """A provider that a person can choose."""

    name: str
    label: str
    default_model: str
    key: str
    """The environment variable that holds the API key; empty if the provider needs no key."""
    ready: bool
    """Whether the provider can be called, because its address and key are known."""
    endpoint: ModelChoice | None = None
    """The endpoint that returns the provider's list of models."""


class ModelName(Value):
    """The name of a model as it is written to the configuration."""

    model: str
    provider: str = ""
    """The name of the provider; empty to keep the configured provider."""


class ModelResolver(Protocol):
    """Finds the models that a configuration names. The methods raise ConfigError if such a model
    can't be used."""

    @property
    def advice(self) -> str:
        """Explains to a person how to configure a model."""
        ...

    @property
    def example_key(self) -> str:
        """The environment variable for the API key of the first provider. Texts that explain how to
        configure a model show this variable as an example."""
        ...

    def main(self) -> ModelChoice | None:
        """Returns the model that answers messages, or None if no model is configured."""
        ...

    def auxiliary(self) -> ModelChoice | None:
        """Returns the model for summaries and titles, or None if the main model writes them."""
        ...

    def fallbacks(self) -> tuple[ModelChoice, ...]:
        """Returns the models that are called, in this order, if the main model fails."""
        ...

    def named(self, name: str) -> ModelChoice:
        """Returns the model with this name. The name is `provider/model`, or only the name of a
        provider, which means the provider's default model."""
        ...

    def requested(self, name: str) -> ModelChoice:
        """Returns the model that an API request names. A model file must be in the models
        folder."""
        ...

    def explain_main(self) -> ChosenModel | None: ...

    def explain_auxiliary(self) -> ChosenModel | None: ...

    def is_demo(self, choice: ModelChoice) -> bool:
        """Returns whether the choice is the embedded demo model."""
        ...


class ModelOffers(Protocol):
    """The providers and models that could be chosen."""

    def all(self) -> tuple[ProviderOffer, ...]:
        """Returns every provider, in the order in which `auto` looks for a key."""
        ...

    def of(self, provider: str) -> ProviderOffer:
        """Returns the provider with this name. If the name is unknown, raises a ConfigError that
        suggests the nearest name."""
        ...

    def endpoints(self) -> tuple[ModelChoice, ...]:
        """Returns the endpoints whose lists of models can be requested: the endpoint in use, and
        all endpoints with a key."""
        ...

    def models(self, provider: str) -> tuple[ModelChoice, ...]:
        """Returns the models in the provider's cached list. For the provider `local`, returns the
        model files on this machine."""
        ...

    def used(self) -> ModelChoice | None:
        """Returns the model that answers now, or None if no model is configured or the model
        can't be used."""
        ...

    def read_name(self, name: str, provider: str = "") -> ModelName:
        """Parses the name that a person typed: `model`, `provider/model`, `provider` or a model
        file."""
        ...

    def changes_provider(self, name: ModelName) -> bool:
        """Returns whether the name belongs to a provider other than the configured provider."""
        ...

    def why_unlikely(self, name: ModelName) -> str:
        """Returns a sentence that says why the model probably does not exist, or "" if there is no
        such reason."""
        ...

    def demo_is_downloaded(self) -> bool:
        """Returns whether the embedded demo model is on this machine."""
        ...
