"""Lists the providers and models that can be chosen, and parses the names that people type."""

from pathlib import Path

from msgspec.structs import replace

from hermes.core.models.catalog import LOCAL, MODEL_FILE
from hermes.core.models.facts import with_known_facts
from hermes.core.models.model_cache import ListedModel
from hermes.core.models.model_config import SettingLayer
from hermes.core.models.resolver import ConfiguredModels
from hermes.text.spelling import did_you_mean
from hermes.types.errors import ConfigError
from hermes.types.offers import ChosenModel, ModelName, ProviderOffer
from hermes.types.profile import ModelChoice
from hermes.types.providers import CUSTOM, Provider


class OfferedModels:
    """The models that can be chosen instead of the configured model."""

    def __init__(self, configured: ConfiguredModels) -> None:
        self._configured = configured
        self._config = configured.config
        self._catalog = configured.catalog
        self._cache = configured.cache

    def all(self) -> tuple[ProviderOffer, ...]:
        """Returns every provider, in the order in which `auto` looks for a key."""
        used = self.used()
        return tuple(self._offer(one, used) for one in self._catalog.providers)

    def of(self, provider: str) -> ProviderOffer:
        """Returns the provider with this name. If the name is unknown, raises a ConfigError that
        suggests the nearest name."""
        return self._offer(self._catalog.named(provider), self.used())

    def endpoints(self) -> tuple[ModelChoice, ...]:
        """Returns the endpoints whose lists of models can be requested: the endpoint in use, and
        all endpoints with a key."""
        used = self.used()
        return tuple(
            one.endpoint
            for one in self.all()
            if one.endpoint and one.ready and (one.key or (used and used.provider == one.name))
        )

    def listed(self, endpoint: ModelChoice) -> tuple[ModelChoice, ...]:
        """Returns the models in the cached list of the endpoint, or no models if no list is
        cached."""
        last = self._cache.last(endpoint)
        models, used = last.models if last else (), self.used()
        return tuple(self._described(endpoint, one, used) for one in models)

    def models(self, provider: str) -> tuple[ModelChoice, ...]:
        """Returns the models in the provider's cached list. For the provider `local`, returns the
        model files on this machine."""
        if provider == LOCAL:
            here, used = ModelChoice(provider=LOCAL, model="", base_url=""), self.used()
            names = self._on_this_machine()
            return tuple(self._described(here, ListedModel(id=name), used) for name in names)
        endpoint = self.of(provider).endpoint
        return self.listed(endpoint) if endpoint else ()

    def demo_is_downloaded(self) -> bool:
        """Returns whether the embedded demo model is on this machine."""
        from hermes.core.models.download import SMOLLM2  # noqa: PLC0415  # slow, rarely needed

        return SMOLLM2.is_downloaded(self._config.models)

    def read_name(self, name: str, provider: str = "") -> ModelName:
        """Parses the name that a person typed: `model`, `provider/model`, `provider` or a model
        file."""
        catalog = self._catalog
        if not name.endswith(MODEL_FILE) and (len(name.split()) != 1 or name.endswith("/")):
            raise ConfigError(f"{name!r} is not the name of a model: write MODEL or provider/MODEL")
        if provider:
            return ModelName(model=name, provider=catalog.named(provider).name)
        if name.endswith(MODEL_FILE):
            path = Path(name.removeprefix(f"{LOCAL}/")).expanduser()
            return ModelName(model=str(path.absolute() if path.is_file() else path), provider=LOCAL)
        prefix, _, rest = name.partition("/")
        named = catalog.find(prefix)
        if name == prefix and named is not None and named.default_model:
            return ModelName(model=named.default_model, provider=named.name)
        if not rest or named is None or self._is_vendor(named, name):
            return ModelName(model=name, provider=self._instead_of_demo())
        return ModelName(model=name if name == named.default_model else rest, provider=named.name)

    def changes_provider(self, name: ModelName) -> bool:
        """Returns whether the name belongs to a provider other than the configured provider."""
        configured = self._catalog.find(self._config.main.provider)
        return bool(name.provider) and (configured is None or configured.name != name.provider)

    def why_unlikely(self, name: ModelName) -> str:
        """Returns a sentence that says why a model with this name probably does not exist; "" if it
        may well exist."""
        choice = self.used()
        provider = name.provider or (choice.provider if choice else "")
        names = [one.model for one in self.models(provider)] if provider else []
        if provider == LOCAL and name.model not in names:
            path = self._config.models / Path(name.model).expanduser()
            if name.model.endswith(MODEL_FILE) and path.is_file():
                return ""
            return (
                f"there is no model file {name.model!r}: give the path of a .gguf file, or"
                f" provider/model; the files here are {', '.join(names)}"
            )
        if not names or name.model in names:
            return ""
        return f"{provider} does not list {name.model!r}{did_you_mean(name.model, names, 0.4)}"

    def _described(
        self, endpoint: ModelChoice, listed: ListedModel, used: ModelChoice | None
    ) -> ModelChoice:
        """Returns a listed model with its context length, its price and the kinds of attachments
        that it accepts. These facts come from the provider's list and from our tables. For the
        model in use (`used`), the settings apply as well."""
        if used and (used.provider, used.model) == (endpoint.provider, listed.id):
            return used
        bare = replace(endpoint, model=listed.id, context_length=None, price=None, attachments=None)
        provider = self._catalog.named(endpoint.provider)
        chosen = ChosenModel(choice=bare, sources={})
        return with_known_facts(self._catalog, listed, provider, chosen).choice

    def _on_this_machine(self) -> tuple[str, ...]:
        """Returns the names of the demo model and of the files in the models folder."""
        from hermes.core.models.download import SMOLLM2  # noqa: PLC0415  # slow, rarely needed

        folder, demo = self._config.models, self._catalog.named(LOCAL).default_model
        files = {file for file in folder.glob(f"*{MODEL_FILE}") if file.is_file()}
        return demo, *sorted(file.name for file in files - {SMOLLM2.path(folder)})

    def _instead_of_demo(self) -> str:
        """Returns the name of the provider that replaces the demo model; "" if no provider replaces
        the demo model. A provider replaces the demo model if the configuration names the demo
        model, but also sets the provider's key or address."""
        if not self._configured.names_demo:
            return ""
        written = self._config.layer("model.base_url") == SettingLayer.CONFIG
        if written and self._config.main.base_url:
            return CUSTOM
        choice = self.used()
        return choice.provider if choice and choice.provider not in (LOCAL, CUSTOM) else ""

    def _is_vendor(self, named: Provider, name: str) -> bool:
        """Returns whether the part of `name` before the slash is the name of a vendor. Otherwise
        this part is the name of the provider `named`. The part can name a vendor only if the model
        in use comes from a router, because routers name their models `vendor/model`."""
        choice = self.used()
        used = self._catalog.find(choice.provider) if choice else None
        if not (choice and used and used.vendor_names) or used == named or name.count("/") > 1:
            return False
        if named.name == CUSTOM:
            # `custom` is never the name of a vendor. `ready`, which is called below, can't be used
            # for `custom`, because it does not know an address that is configured but not in use.
            return False
        names = {one.model for one in self.listed(choice)}
        maker = named.key_required and not named.vendor_names
        return name in names or not named.ready(self._config.environ) or (maker and not names)

    def used(self) -> ModelChoice | None:
        """Returns the model that answers now. Returns None if no model is configured, or if the
        configured model can't be used."""
        try:
            return self._configured.main()
        except ConfigError:
            return None

    def _offer(self, provider: Provider, used: ModelChoice | None) -> ProviderOffer:
        environ = self._config.environ
        address = provider.address(environ).rstrip("/")
        behaviour = self._catalog.behaviour(provider, address)
        endpoint = ModelChoice(
            provider=provider.name,
            model="",
            base_url=address,
            api_key=provider.key(environ),
            wire=behaviour.wire,
            quirks=behaviour.quirks,
        )
        if used and used.provider == provider.name:
            endpoint = used
        return ProviderOffer(
            name=provider.name,
            label=provider.label,
            default_model=provider.default_model,
            key=provider.keys[0] if provider.key_required else "",
            ready=provider.ready(environ) or endpoint is used,
            endpoint=endpoint if endpoint.base_url else None,
        )
