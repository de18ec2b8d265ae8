"""A provider of models as data: its address, keys, wire format and quirks."""

from collections.abc import Mapping

from hermes.types.messages import AttachmentKind
from hermes.types.profile import Quirks
from hermes.types.value import Value


class Provider(Value):
    """How to reach one vendor or local server."""

    name: str
    label: str
    base_url: str = ""
    """Empty if it is not the same for everybody."""
    keys: tuple[str, ...] = ()
    """Environment variables that may hold its key; the first one that is set counts."""
    base_url_env: tuple[str, ...] = ()
    """Environment variables that may hold another address than `base_url`."""
    default_model: str = ""
    small_model: str = ""
    """A cheap model for summaries and titles; empty if the default does that too."""
    context_length: int | None = None
    """Tokens that each of its models can read at once, as far as we know."""
    wire: str = "chat"
    """Name of its wire format."""
    quirks: Quirks = Quirks()
    custom_address_provider: str = ""
    """Name of the provider whose wire format and quirks apply at another address; empty for its
    own."""
    tools: bool = True
    """Whether its models can drive tools."""
    attachments: tuple[AttachmentKind, ...] | None = None
    """Kinds of attachments that each of its models accepts; None if that depends on the model."""
    key_required: bool = True
    embedded: bool = False
    """Its models run in a process of ours, so that it has no address."""
    vendor_names: bool = False
    """Its models are named `vendor/model`, so a slash does not name a provider."""
    aliases: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)

    def key_variable(self, environ: Mapping[str, str]) -> str:
        """The variable that holds its key; empty if none is set."""
        return next((name for name in self.keys if environ.get(name)), "")

    def key(self, environ: Mapping[str, str]) -> str:
        return environ.get(self.key_variable(environ), "")

    def address_variable(self, environ: Mapping[str, str]) -> str:
        """The variable that holds another address; empty if none is set."""
        return next((name for name in self.base_url_env if environ.get(name)), "")

    def address(self, environ: Mapping[str, str]) -> str:
        return environ.get(self.address_variable(environ), self.base_url)

    def ready(self, environ: Mapping[str, str]) -> bool:
        """Whether nothing is missing to call it."""
        if self.embedded:
            return True
        return bool(self.address(environ) and (self.key(environ) or not self.key_required))

    def model(self, name: str) -> str:
        """The model as this provider names it: the provider `acme` calls `acme/m` just `m`."""
        prefix, _, rest = name.partition("/")
        ours = prefix.casefold() in self.names
        if ours and rest and ("/" in rest or not self.vendor_names):
            return rest
        return name or self.default_model
