"""The providers we can reach: where each is, what it speaks and which key it wants."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec

from hermes.text.spelling import did_you_mean
from hermes.types.errors import ConfigError
from hermes.types.profile import Price, Wire
from hermes.types.value import Value

CUSTOM, LOCAL = "custom", "local"
MODEL_FILE = ".gguf"

_SAME = re.compile(r"(-latest|-20\d\d-?\d\d-?\d\d)?")


class Provider(Value):
    """How to reach one vendor or local server."""

    name: str
    label: str
    base_url: str = ""
    """Empty where it is not the same for everybody."""
    keys: tuple[str, ...] = ()
    """Environment names of its key; the first that is set counts."""
    base_url_env: tuple[str, ...] = ()
    """Environment names that put another address in place of `base_url`."""
    default_model: str = ""
    small_model: str = ""
    """Cheap, for summaries and titles; empty where the default does that too."""
    context_length: int | None = None
    """What each of its models can read at once, as far as we know."""
    wire: Wire = "chat"
    tools: bool = True
    """Whether its models can drive tools."""
    key_required: bool = True
    vendor_names: bool = False
    """Its models are named `vendor/model`, so a slash does not name a provider."""
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    def key_name(self, environ: Mapping[str, str]) -> str:
        """The variable that holds its key, or nothing."""
        return next((name for name in self.keys if environ.get(name)), "")

    def key(self, environ: Mapping[str, str]) -> str:
        return environ.get(self.key_name(environ), "")

    def address_name(self, environ: Mapping[str, str]) -> str:
        """The variable that moves it to another address, or nothing."""
        return next((name for name in self.base_url_env if environ.get(name)), "")

    def address(self, environ: Mapping[str, str]) -> str:
        return environ.get(self.address_name(environ), self.base_url)

    def ready(self, environ: Mapping[str, str]) -> bool:
        """Whether it has all that it needs to be asked."""
        if self.key_required:
            return bool(self.key(environ) and self.address(environ))
        return self.name == LOCAL or bool(self.address(environ))

    def model(self, name: str) -> str:
        """The model as this provider names it: `openai/gpt-x` is `gpt-x` at OpenAI."""
        prefix, _, rest = name.partition("/")
        ours = prefix.casefold() in self.names
        if ours and rest and ("/" in rest or not self.vendor_names):
            return rest
        return name or self.default_model


class Family(Value):
    """What is known of a model, whoever serves it."""

    name: str
    """With dashes in place of dots, as some write it one way and some the other."""
    context_length: int
    price: Price | None = None


class Catalog(Value):
    providers: tuple[Provider, ...]
    models: tuple[Family, ...] = ()

    @staticmethod
    def load() -> "Catalog":
        """The table that we ship, read once."""
        return _shipped()

    @property
    def variables(self) -> frozenset[str]:
        """Every variable that holds a provider's key or moves it to another address."""
        return frozenset(name for one in self.providers for name in (*one.keys, *one.base_url_env))

    def find(self, name: str) -> Provider | None:
        """The provider of that name or alias."""
        wanted = name.casefold()
        return next((one for one in self.providers if wanted in one.names), None)

    def named(self, name: str) -> Provider:
        """The provider of that name or alias; ConfigError with the nearest for any other."""
        if found := self.find(name):
            return found
        names = [provider.name for provider in self.providers]
        hint = did_you_mean(name, names, 0.7) or f": known are {', '.join(names)}"
        raise ConfigError(f"provider {name!r} is not supported{hint}")

    def at(self, base_url: str) -> Provider | None:
        """The provider that lives at the address, if we know it."""
        wanted = base_url.rstrip("/")
        return next((one for one in self.providers if one.base_url == wanted), None)

    def auto(self, environ: Mapping[str, str], model: str = "") -> Provider | None:
        """The first provider with a key; `openai/gpt-x` prefers OpenAI among the direct ones."""
        if model.endswith(MODEL_FILE):
            return self.named(LOCAL)
        ready = [one for one in self.providers if one.key_required and one.ready(environ)]
        if not ready:
            return None
        prefix = model.partition("/")[0].casefold()
        explicit = [one for one in ready if prefix in one.names]
        if explicit and (not ready[0].vendor_names or model.count("/") > 1):
            return explicit[0]
        return ready[0]

    def family(self, model: str) -> Family | None:
        """What we know of a model by its name; a variant has the window but not the price."""
        name = model.rpartition("/")[2].casefold().replace(".", "-")
        found = [one for one in self.models if name.startswith(one.name)]
        if not found:
            return None
        best = max(found, key=lambda one: len(one.name))
        same = _SAME.fullmatch(name.removeprefix(best.name))
        return best if same else msgspec.structs.replace(best, price=None)


@cache
def _shipped() -> Catalog:
    table = Path(__file__).with_name("providers.toml").read_bytes()
    return msgspec.toml.decode(table, type=Catalog)
