"""A provider of models: its address, keys, wire format and quirks."""

from collections.abc import Mapping

from hermes.types.messages import AttachmentKind
from hermes.types.profile import Quirks
from hermes.types.value import Value

CUSTOM = "custom"
"""The provider for any endpoint that is not in the table of providers."""


class Provider(Value):
    """A vendor or a local server that serves models."""

    name: str
    label: str
    base_url: str = ""
    """The address of the provider's API; empty if each user has their own address."""
    keys: tuple[str, ...] = ()
    """Environment variables that may hold the provider's key. The first variable that is set is
    used."""
    base_url_env: tuple[str, ...] = ()
    """Environment variables that override `base_url`."""
    default_model: str = ""
    small_model: str = ""
    """A cheap model for summaries and titles; empty if the default model writes them."""
    context_length: int | None = None
    """Size of the context window of all models of the provider, in tokens. None if the size is
    unknown or differs between models."""
    wire: str = "chat"
    """Name of the provider's wire format."""
    quirks: Quirks = Quirks()
    custom_address_provider: str = ""
    """Name of another provider. If the address of this provider is overridden, the wire format and
    the quirks of the other provider are used. Empty if this provider then keeps its own wire format
    and quirks."""
    tools: bool = True
    """Whether the provider's models can call tools."""
    attachments: tuple[AttachmentKind, ...] | None = None
    """Kinds of attachments that all models of the provider accept; None if that depends on the
    model."""
    key_required: bool = True
    embedded: bool = False
    """Whether the provider's models run in one of our processes, so that the provider has no
    address."""
    vendor_names: bool = False
    """Whether the provider's models are named `vendor/model`. In these names, the part before the
    slash is not the name of a provider."""
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    def key_variable(self, environ: Mapping[str, str]) -> str:
        """Returns the environment variable that holds the provider's key, or "" if no such variable
        is set."""
        return next((name for name in self.keys if environ.get(name)), "")

    def key(self, environ: Mapping[str, str]) -> str:
        return environ.get(self.key_variable(environ), "")

    def address_variable(self, environ: Mapping[str, str]) -> str:
        """Returns the environment variable that overrides the provider's address, or "" if no such
        variable is set."""
        return next((name for name in self.base_url_env if environ.get(name)), "")

    def address(self, environ: Mapping[str, str]) -> str:
        return environ.get(self.address_variable(environ), self.base_url)

    def ready(self, environ: Mapping[str, str]) -> bool:
        """Returns whether the provider can be called, because its address and key are known."""
        if self.embedded:
            return True
        return bool(self.address(environ) and (self.key(environ) or not self.key_required))

    def model(self, name: str) -> str:
        """Returns the provider's own name for a model: `acme/m` is `m` at the provider `acme`."""
        prefix, _, rest = name.partition("/")
        ours = prefix.casefold() in self.names
        if ours and rest and ("/" in rest or not self.vendor_names):
            return rest
        return name or self.default_model
