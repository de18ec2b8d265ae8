"""The providers we can reach: where each is, what it speaks and which key it wants."""

import difflib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from hermes.types.errors import ConfigError
from hermes.types.value import Value

CUSTOM = "custom"


class Provider(Value):
    """How to reach one vendor or local server."""

    name: str
    label: str
    base_url: str = ""
    keys: tuple[str, ...] = ()
    """Environment names of its key; the first that is set counts."""
    base_url_env: tuple[str, ...] = ()
    """Environment names that put another address in place of `base_url`."""
    default_model: str = ""
    wire: Literal["chat"] = "chat"
    key_required: bool = True
    vendor_names: bool = False
    """Its models are named `vendor/model`, so a slash does not name a provider."""
    aliases: tuple[str, ...] = ()

    def key(self, environ: Mapping[str, str]) -> str:
        """Its key, or nothing."""
        return next((environ[name] for name in self.keys if environ.get(name)), "")

    def address(self, environ: Mapping[str, str]) -> str:
        named = (environ[name] for name in self.base_url_env if environ.get(name))
        return next(named, self.base_url)

    def model(self, name: str) -> str:
        """The model as this provider names it: `openai/gpt-x` is `gpt-x` at OpenAI."""
        prefix, _, rest = name.partition("/")
        ours = prefix.casefold() in (self.name, *self.aliases)
        if ours and rest and ("/" in rest or not self.vendor_names):
            return rest
        return name or self.default_model


class Catalog(Value):
    providers: tuple[Provider, ...]

    @staticmethod
    def load() -> "Catalog":
        """The table that we ship, read once."""
        return _shipped()

    def named(self, name: str) -> Provider:
        """The provider of that name or alias; ConfigError with the nearest for any other."""
        wanted = name.casefold()
        for provider in self.providers:
            if wanted in (provider.name, *provider.aliases):
                return provider
        names = [provider.name for provider in self.providers]
        near = difflib.get_close_matches(wanted, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
        raise ConfigError(f"model.provider {name!r} is not supported: {hint}")

    def at(self, base_url: str) -> Provider | None:
        """The provider that lives at the address, if we know it."""
        wanted = base_url.rstrip("/")
        return next((one for one in self.providers if one.base_url == wanted), None)

    def auto(self, environ: Mapping[str, str], model: str = "") -> Provider | None:
        """The first provider with a key; `openai/gpt-x` prefers OpenAI among the direct ones."""
        ready = [one for one in self.providers if one.key_required and one.key(environ)]
        if not ready:
            return None
        prefix = model.partition("/")[0].casefold()
        explicit = [one for one in ready if prefix in (one.name, *one.aliases)]
        if explicit and (not ready[0].vendor_names or model.count("/") > 1):
            return explicit[0]
        return ready[0]


@cache
def _shipped() -> Catalog:
    table = Path(__file__).with_name("providers.toml").read_bytes()
    return msgspec.toml.decode(table, type=Catalog)
