"""The models that are configured, and those that could be, as the command line sees them."""

from typing import Protocol

from hermes.types.profile import ModelChoice
from hermes.types.value import Value


class ChosenModel(Value):
    """A model, and the source of each of its properties."""

    choice: ModelChoice
    sources: dict[str, str]
    """By field of the choice; a property that is not known has no source."""


class ProviderOffer(Value):
    """A provider that a person can choose."""

    name: str
    label: str
    default_model: str
    key: str
    """The variable for its key; empty if it needs none."""
    ready: bool
    """Whether nothing is missing to call it."""
    endpoint: ModelChoice | None = None
    """The endpoint that has its list of models."""


class ModelName(Value):
    """A model as it is written into the configuration."""

    model: str
    provider: str = ""
    """Empty if the configured provider stays."""


class ModelResolver(Protocol):
    """Finds the models that a configuration names. ConfigError says why one can't be used."""

    @property
    def advice(self) -> str:
        """How to configure a model, for a person who has none."""
        ...

    @property
    def example_key(self) -> str:
        """The variable for the key of the first provider, for examples."""
        ...

    def main(self) -> ModelChoice | None:
        """The model that answers; None if nothing is configured."""
        ...

    def auxiliary(self) -> ModelChoice | None:
        """The model for summaries and titles; None if the main model does that too."""
        ...

    def fallbacks(self) -> tuple[ModelChoice, ...]:
        """The models that are called if the main one can't answer, in order."""
        ...

    def named(self, name: str) -> ModelChoice:
        """The model that `provider/model` names; a provider alone means its default."""
        ...

    def requested(self, name: str) -> ModelChoice:
        """The model that an API request names; a model file must be in the folder of models."""
        ...

    def explain_main(self) -> ChosenModel | None: ...

    def explain_auxiliary(self) -> ChosenModel | None: ...

    def is_demo(self, choice: ModelChoice) -> bool:
        """Whether the choice is the embedded demo model."""
        ...


class ModelOffers(Protocol):
    """The providers and models that could be chosen."""

    def all(self) -> tuple[ProviderOffer, ...]:
        """Every provider, in the order in which `auto` looks for a key."""
        ...

    def of(self, provider: str) -> ProviderOffer:
        """One provider; ConfigError with the nearest name for an unknown one."""
        ...

    def endpoints(self) -> tuple[ModelChoice, ...]:
        """The endpoints whose lists can be requested: all with a key, and the one in use."""
        ...

    def models(self, provider: str) -> tuple[ModelChoice, ...]:
        """The models in the provider's last list, or those that are on this machine."""
        ...

    def read_name(self, name: str, provider: str = "") -> ModelName:
        """Reads a person's `model`, `provider/model`, `provider` or model file."""
        ...

    def changes_provider(self, name: ModelName) -> bool:
        """Whether the name belongs to another provider than the configured one."""
        ...

    def why_unlikely(self, name: ModelName) -> str:
        """Why the model probably does not exist, as a sentence; empty if all seems well."""
        ...

    def demo_is_downloaded(self) -> bool:
        """Whether the embedded demo model is on this machine."""
        ...
