"""The table of known providers and models, and the providers that plugins add."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from hermes.text.spelling import did_you_mean
from hermes.types.errors import ConfigError
from hermes.types.messages import AttachmentKind
from hermes.types.profile import Price, Quirks
from hermes.types.providers import Provider
from hermes.types.value import Value

LOCAL = "local"
"""The provider of models that run on this machine."""
MODEL_FILE = ".gguf"

_SAME = re.compile(r"(-latest|-20\d\d-?\d\d-?\d\d)?")


class ModelFamily(Value):
    """The facts about a model that do not depend on its provider."""

    name: str
    """The name of the model, written with dashes instead of dots. Some providers write dots, so
    names are compared with dashes only."""
    context_length: int
    price: Price | None = None


class ReasoningRule(Value):
    """How the reasoning of some models is controlled, if this differs from the default."""

    models: str
    """Regular expression. The rule applies to every model whose name contains a match."""
    reasoning: Literal["budget", "effort", "none"]


class AttachmentRule(Value):
    """The kinds of attachments that some models accept at every provider."""

    models: str
    """Regular expression. The rule applies to every model whose name, in lower case, contains a
    match."""
    kinds: tuple[AttachmentKind, ...]


class Catalog(Value):
    providers: tuple[Provider, ...]
    """The providers in the order in which `auto` looks for a key."""
    models: tuple[ModelFamily, ...] = ()
    reasoning: tuple[ReasoningRule, ...] = ()
    attachments: tuple[AttachmentRule, ...] = ()
    unsupported_settings: tuple[str, ...] = ()
    """Settings of the program Hermes Agent that are named after a provider. Hermes ignores them."""

    @staticmethod
    def load() -> "Catalog":
        """Returns the built-in table. Its file is read only once per process."""
        return _shipped()

    def extended(self, providers: Iterable[Provider]) -> "Catalog":
        """Returns the catalog with more providers. Raises ConfigError if the catalog already has a
        provider with the same name."""
        added = tuple(providers)
        taken = {name for one in self.providers for name in one.names}
        for one in added:
            if both := taken.intersection(one.names):
                raise ConfigError(
                    f"a plugin adds the provider {both.pop()!r}, which already exists: give the"
                    " provider of the plugin another name"
                )
            taken.update(one.names)
        return replace(self, providers=(*self.providers, *added))

    def with_address(self, name: str, base_url: str) -> "Catalog":
        """Returns a catalog in which `base_url` is the default address of the provider `name`. If
        `base_url` is empty, returns this catalog unchanged."""
        if not base_url:
            return self
        wanted = replace(self.named(name), base_url=base_url.rstrip("/"))
        others = (wanted if one.name == name else one for one in self.providers)
        return replace(self, providers=tuple(others))

    @property
    def variables(self) -> frozenset[str]:
        """All environment variables for the keys and addresses of providers."""
        return frozenset(name for one in self.providers for name in (*one.keys, *one.base_url_env))

    def find(self, name: str) -> Provider | None:
        """Returns the provider with this name or alias, or None."""
        wanted = name.casefold()
        return next((one for one in self.providers if wanted in one.names), None)

    def named(self, name: str) -> Provider:
        """Returns the provider with this name or alias. For other names, raises a ConfigError that
        suggests the nearest name."""
        if found := self.find(name):
            return found
        names = [provider.name for provider in self.providers]
        hint = did_you_mean(name, names, 0.7) or f": choose one of {', '.join(names)}"
        raise ConfigError(f"provider {name!r} is not supported{hint}")

    def at(self, base_url: str) -> Provider | None:
        """Returns the provider with this address, or None."""
        wanted = base_url.rstrip("/")
        return next((one for one in self.providers if one.base_url == wanted), None)

    def auto(self, environ: Mapping[str, str], model: str = "") -> Provider | None:
        """Returns the provider that `auto` selects. For a model file, this is `local`. For other
        models, it is a provider whose key is set: the provider whose name is the first part of the
        model's name, or else the first provider with a key. Returns None if no key is set."""
        if model.endswith(MODEL_FILE):
            return self.named(LOCAL)
        ready = [one for one in self.providers if one.key_required and one.ready(environ)]
        if not ready:
            return None
        prefix = model.partition("/")[0].casefold()
        explicit = [one for one in ready if prefix in one.names]
        # A router (a provider that passes calls on to others) names its models `vendor/model`. So
        # if the first provider with a key is a router, the part of `model` before the slash may be
        # the name of a vendor and not of a provider.
        if explicit and (not ready[0].vendor_names or model.count("/") > 1):
            return explicit[0]
        return ready[0]

    def family(self, model: str) -> ModelFamily | None:
        """Returns the known facts about the model with this name. For a variant of a known model,
        returns the facts about the known model without its price. Returns None if nothing is
        known."""
        name = model.rpartition("/")[2].casefold().replace(".", "-")
        found = [one for one in self.models if name.startswith(one.name)]
        if not found:
            return None
        best = max(found, key=lambda one: len(one.name))
        same = _SAME.fullmatch(name.removeprefix(best.name))
        return best if same else replace(best, price=None)

    def accepted(self, model: str) -> tuple[AttachmentKind, ...] | None:
        """Returns the kinds of attachments that the model with this name accepts, or None if they
        are unknown."""
        name = model.casefold()
        return next((one.kinds for one in self.attachments if re.search(one.models, name)), None)

    def behaviour(self, provider: Provider, base_url: str) -> Provider:
        """Returns the provider whose wire format and special rules (quirks) apply at `base_url`. If
        the operator has changed the address of `provider`, this may be another provider."""
        moved = bool(provider.custom_address_provider) and base_url.rstrip("/") != provider.base_url
        return self.named(provider.custom_address_provider) if moved else provider

    def quirks(self, provider: Provider, model: str, wire: str) -> Quirks:
        """Returns the special rules (quirks) for a model of a provider in a wire format."""
        quirks = provider.quirks
        if wire != provider.wire:
            quirks = replace(quirks, extra_body="")
        for rule in self.reasoning:
            if re.search(rule.models, model):
                return replace(quirks, reasoning=rule.reasoning)
        return quirks


@cache
def _shipped() -> Catalog:
    table = Path(__file__).with_name("providers.toml").read_bytes()
    return msgspec.toml.decode(table, type=Catalog)
