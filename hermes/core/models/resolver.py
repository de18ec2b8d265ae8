"""Resolves the models that a configuration names, and explains each choice."""

from pathlib import Path

import msgspec
from msgspec.structs import replace

from hermes.core.models.catalog import LOCAL, MODEL_FILE
from hermes.core.models.facts import with_known_facts, with_settings
from hermes.core.models.model_cache import ModelCache
from hermes.core.models.model_config import EndpointConfig, ModelConfig, SettingLayer
from hermes.core.models.registry import ModelRegistry
from hermes.core.models.wires import find_wire
from hermes.types.errors import ConfigError
from hermes.types.offers import ChosenModel
from hermes.types.profile import ModelChoice
from hermes.types.providers import CUSTOM, Provider
from hermes.types.value import Value

MAIN_PROVIDER = ("", "auto", "main")
"""Values of `auxiliary.provider` that mean the provider of the main model."""

ADVICE = """\
No model is configured. Set the key of a provider, as in
  hermes config set {key} KEY        (`hermes model list` names them all)
or the address of any other endpoint, and one of its models:
  hermes config set model.base_url http://127.0.0.1:11434/v1
  hermes model NAME
or take the small demo model, which runs on this machine:
  hermes model use local"""


class _Endpoint(Value):
    """A provider, with the settings that override its address, key and wire format."""

    provider: Provider
    base_url: str = ""
    api_key: str = ""
    wire: str = ""
    sources: dict[str, str] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        return f"_Endpoint(provider={self.provider.name!r})"


class ConfiguredModels:
    """The models of one configuration. Nothing is cached, because model lists may change."""

    def __init__(self, config: ModelConfig, registry: ModelRegistry) -> None:
        self.config = config
        self.catalog = registry.catalog.with_address(CUSTOM, config.custom_base_url)
        self.cache = ModelCache(config.cache)
        self.wires = registry.wires

    @property
    def advice(self) -> str:
        """Explains to a person how to configure a model."""
        return ADVICE.format(key=self.example_key)

    @property
    def example_key(self) -> str:
        """The environment variable for the API key of the first provider. Advice for people names
        this variable as an example."""
        return self.catalog.providers[0].keys[0]

    def main(self) -> ModelChoice | None:
        """Returns the model that answers messages, or None if no model is configured."""
        chosen = self.explain_main()
        return chosen.choice if chosen else None

    @property
    def has_auxiliary(self) -> bool:
        """Whether the configuration names a model for summaries and titles."""
        wanted = self.config.auxiliary
        other = wanted.provider.casefold() not in MAIN_PROVIDER
        return bool(other or wanted.base_url or wanted.model)

    def auxiliary(self) -> ModelChoice | None:
        """Returns the model for summaries and titles, or None if the main model writes them."""
        chosen = self.explain_auxiliary()
        return chosen.choice if chosen else None

    def fallbacks(self) -> tuple[ModelChoice, ...]:
        """Returns the models of `model.fallbacks`. If one of them can't be used, raises a
        ConfigError that names it."""
        choices = []
        for name in self.config.fallbacks:
            try:
                choices.append(self.named(name))
            except ConfigError as error:
                raise ConfigError(
                    f"model.fallbacks: {name!r} can't be used: {error} (write each model as"
                    " provider/model)"
                ) from error
        return tuple(choices)

    def named(self, name: str) -> ModelChoice:
        """Returns the model that `provider/model` names. A provider alone means its default
        model."""
        prefix, _, rest = name.partition("/")
        provider = self.catalog.named(prefix)
        model = name if name == provider.default_model else rest or provider.default_model
        if not model:
            raise ConfigError(f"{name!r} names no model: write {prefix}/MODEL")
        main = self._usable_main()
        if main is None or main.choice.provider != provider.name:
            return self._chosen(_Endpoint(provider=provider), model).choice
        if model == main.choice.model:
            return main.choice
        return self._chosen(self._beside(main), model).choice

    def requested(self, name: str) -> ModelChoice:
        """Returns the model that an API request names.

        A request may use the files that the operator put into the models folder, and no other file
        of this machine.
        """
        choice = self.named(name)
        if choice.provider == LOCAL and Path(choice.model).name != choice.model:
            raise ConfigError(
                f"{name!r} is not a model in {self.config.models}: name a file of this folder"
            )
        return choice

    @property
    def names_demo(self) -> bool:
        """Whether the configuration names the embedded demo model."""
        main = self.config.main
        is_local = self.catalog.find(main.provider) == self.catalog.named(LOCAL)
        return is_local and not main.model.endswith(MODEL_FILE)

    def is_demo(self, choice: ModelChoice) -> bool:
        """Returns whether the choice is the embedded demo model, and not a file of the operator."""
        return choice.provider == LOCAL and not choice.model.endswith(MODEL_FILE)

    def explain_main(self) -> ChosenModel | None:
        """Returns the model that answers messages, and where each of its settings comes from; None
        if no model is configured."""
        wanted, demo = self._without_demo(self.config.main)
        endpoint = self._endpoint(wanted)
        if endpoint is None:
            return None
        if demo:
            reason = f"{endpoint.sources['provider']}, instead of the demo model of {demo}"
            endpoint = replace(endpoint, sources={**endpoint.sources, "provider": reason})
        if self.config.wire != "auto":
            sources = {**endpoint.sources, "wire": self.config.source("model.wire")}
            endpoint = replace(endpoint, wire=self.config.wire, sources=sources)
        named = endpoint.provider.model(wanted.model)
        reason = self.config.source("model.default") if wanted.model else ""
        return with_settings(self.config, self._chosen(endpoint, named, reason))

    def explain_auxiliary(self) -> ChosenModel | None:
        """Returns the model for summaries and titles, and where each of its settings comes from;
        None if the main model writes them."""
        if not self.has_auxiliary:
            return None
        wanted = self.config.auxiliary
        if wanted.provider.casefold() in MAIN_PROVIDER:
            wanted = replace(wanted, provider="")
        main = None if wanted.base_url else self._usable_main()
        if main and (not wanted.provider or self._same(wanted.provider, main)):
            endpoint, usual = self._beside(main), main.choice.model
        else:
            found = self._endpoint(wanted)
            if found is None:
                return None
            endpoint, usual = found, ""
        provider = endpoint.provider
        model, reason = provider.small_model, f"the small model of {provider.label}"
        if wanted.model:
            model, reason = provider.model(wanted.model), self.config.source("auxiliary.model")
        elif not model:
            model, reason = provider.default_model or usual, ""
        return self._chosen(endpoint, model, reason, "auxiliary.model")

    def _without_demo(self, wanted: EndpointConfig) -> tuple[EndpointConfig, str]:
        """If another model replaces the demo model, returns the settings without the demo model,
        and the place where the demo model was configured, such as `config.yaml line 3`. Otherwise,
        returns the unchanged settings and "".

        A demo model that config.yaml names is only a fallback: a configured address or the first
        provider with a key replaces it.
        """
        local = self.catalog.named(LOCAL)
        if (
            not self.names_demo
            or self.config.layer("model.provider") > SettingLayer.CONFIG
            or not (wanted.base_url or self.catalog.auto(self.config.environ))
        ):
            return wanted, ""
        model = "" if local.model(wanted.model) == local.default_model else wanted.model
        source = self.config.source("model.provider")
        return replace(wanted, provider="auto", model=model), source

    def _same(self, provider: str, main: ChosenModel) -> bool:
        return self.catalog.named(provider).name == main.choice.provider

    def _usable_main(self) -> ChosenModel | None:
        try:
            return self.explain_main()
        except ConfigError:
            # An error in the settings of the main model must not prevent the use of other models.
            return None

    def _beside(self, main: ChosenModel) -> _Endpoint:
        """Returns the endpoint of the main model, at which other models of the same provider can be
        called too."""
        choice, fields = main.choice, ("provider", "base_url", "api_key", "wire")
        return _Endpoint(
            provider=self.catalog.named(choice.provider),
            base_url=choice.base_url,
            api_key=choice.api_key,
            wire=choice.wire,
            sources={name: main.sources[name] for name in fields if name in main.sources},
        )

    def _endpoint(self, wanted: EndpointConfig) -> _Endpoint | None:
        """Returns the endpoint that a section of the settings names. If the section names no
        endpoint, returns the endpoint of the first provider whose key is set. Returns None if no
        key is set either."""
        config, section = self.config, wanted.section
        name = wanted.provider.casefold() or "auto"
        kept_address = name == CUSTOM and self.catalog.named(CUSTOM).base_url
        named = name not in ("auto", CUSTOM) or bool(kept_address)
        strength = max(SettingLayer.DOTENV, config.layer(f"{section}.provider"))
        if wanted.base_url and (not named or config.layer(f"{section}.base_url") >= strength):
            return self._addressed(wanted)
        if named:
            return self._of_provider(wanted, self.catalog.named(name))
        if name == CUSTOM:
            variable = config.variables.get(f"{section}.base_url", "")
            raise ConfigError(
                f"{section}.provider is custom and {section}.base_url is empty: set it"
                f" in {config.config_file}, or {variable} in {config.dotenv_file}"
            )
        first = self.catalog.auto(config.environ, wanted.model)
        if first is None:
            return None
        found = config.variable_source(first.key_variable(config.environ))
        reason = f"the first key found, {found}" if found else "a model file"
        return _Endpoint(provider=first, sources={"provider": reason})

    def _addressed(self, wanted: EndpointConfig) -> _Endpoint:
        """Returns the endpoint at the address that a section names."""
        section = wanted.section
        provider = self.catalog.at(wanted.base_url) or self.catalog.named(CUSTOM)
        key = wanted.api_key if self._key_belongs(wanted) else ""
        sources = self._sources(section, base_url=wanted.base_url, api_key=wanted.api_key)
        if wanted.api_key and not key:
            sources["api_key"] = f"the key in {sources['api_key']} is for another address"
        return _Endpoint(
            provider=provider,
            base_url=wanted.base_url,
            api_key=key,
            sources={"provider": f"the address in {sources['base_url']}", **sources},
        )

    def _key_belongs(self, wanted: EndpointConfig) -> bool:
        """Returns whether the key of a section may be sent to the address of the section. A key
        must not be sent to another address than the one for which it was stored."""
        key_layer = self.config.layer(f"{wanted.section}.api_key")
        if self.config.layer(f"{wanted.section}.base_url") <= key_layer:
            return True
        addresses = ("", wanted.base_url.rstrip("/"))
        return key_layer == SettingLayer.DOTENV and wanted.key_address.rstrip("/") in addresses

    def _of_provider(self, wanted: EndpointConfig, provider: Provider) -> _Endpoint:
        """Returns the endpoint of the provider that a section names."""
        config, section = self.config, wanted.section
        own = config.layer(f"{section}.provider") <= SettingLayer.CONFIG
        key = wanted.api_key
        if not own or config.layer(f"{section}.api_key") > SettingLayer.CONFIG:
            key = ""
        if provider.key(config.environ):
            key = ""
        base_url = wanted.base_url if own else ""
        used = {"provider": wanted.provider, "base_url": base_url, "api_key": key}
        sources = self._sources(section, **used)
        return _Endpoint(provider=provider, base_url=base_url, api_key=key, sources=sources)

    def _sources(self, section: str, **used: str) -> dict[str, str]:
        """Returns where the settings of a section come from. Settings without a value are left
        out."""
        return {
            name: self.config.source(f"{section}.{name}") for name, value in used.items() if value
        }

    def _chosen(
        self, endpoint: _Endpoint, model: str, reason: str = "", setting: str = "model.default"
    ) -> ChosenModel:
        """Returns the model at the endpoint. Errors mention `setting`, the key that names the
        model."""
        config, provider = self.config, endpoint.provider
        key, base_url = self._key(endpoint), self._base_url(endpoint)
        if not model:
            variable = config.variables.get(setting, "")
            raise ConfigError(
                f"no model is named for {provider.label}: set {setting} in {config.config_file},"
                f" or {variable}"
            )
        if provider.name == LOCAL and model.endswith(MODEL_FILE):
            model = str(Path(model).expanduser())
        behaviour = self.catalog.behaviour(provider, base_url)
        wire = find_wire(self.wires, endpoint.wire or behaviour.wire).name
        choice = ModelChoice(
            provider=provider.name,
            model=model,
            base_url=base_url,
            api_key=key,
            key_place=endpoint.sources.get("api_key", "") or self._key_place(provider),
            wire=wire,
            # A model file that a person chose may be able to call tools. The demo model can't call
            # tools.
            tools=provider.tools or model.endswith(MODEL_FILE),
            quirks=self.catalog.quirks(behaviour, model, wire),
        )
        usual = f"usual for {provider.label}"
        found = {
            "provider": "named with the model",
            "model": reason or f"the default of {provider.label}",
            "base_url": config.variable_source(provider.address_variable(config.environ)) or usual,
            "api_key": config.variable_source(provider.key_variable(config.environ)),
            "wire": usual if behaviour == provider else "usual for another address",
        }
        chosen = ChosenModel(choice=choice, sources={**found, **endpoint.sources})
        return with_known_facts(self.catalog, self.cache.find(choice), provider, chosen)

    def _key(self, endpoint: _Endpoint) -> str:
        provider = endpoint.provider
        # The key of one custom endpoint must not be sent to another custom endpoint.
        foreign = provider.name == CUSTOM and endpoint.base_url
        key = endpoint.api_key or ("" if foreign else provider.key(self.config.environ))
        if provider.key_required and not key:
            raise ConfigError(
                f"{provider.label} needs a key: set {provider.keys[0]} in {self.config.dotenv_file}"
            )
        return key

    def _key_place(self, provider: Provider) -> str:
        """Returns a text that names the environment variable for the provider's key, and the file
        in which the variable is or should be set."""
        name = provider.key_variable(self.config.environ) or next(iter(provider.keys), "")
        return self.config.variable_source(name)

    def _base_url(self, endpoint: _Endpoint) -> str:
        provider = endpoint.provider
        base_url = endpoint.base_url or provider.address(self.config.environ)
        if not base_url and not provider.embedded:
            raise ConfigError(
                f"{provider.label} needs an address: set {provider.base_url_env[0]}"
                f" in {self.config.dotenv_file}"
            )
        return base_url.rstrip("/")
