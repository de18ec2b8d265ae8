"""The wire formats by name: ours, and those that plugins add."""

from collections.abc import Iterable, Mapping

from hermes.core.models.anthropic import AnthropicMessages
from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.openai_responses import OpenAIResponses
from hermes.types.errors import ConfigError
from hermes.types.models import WireFormat

WireFormats = Mapping[str, WireFormat]


def wire_formats(added: Iterable[WireFormat] = ()) -> WireFormats:
    """Our wire formats and the added ones; ConfigError if a name is taken."""
    found: dict[str, WireFormat] = {}
    ours: tuple[WireFormat, ...] = (OpenAIChat(), OpenAIResponses(), AnthropicMessages())
    for wire in (*ours, *added):
        if wire.name in found:
            raise ConfigError(f"a plugin adds the wire format {wire.name!r}, which exists")
        found[wire.name] = wire
    return found


def find_wire(wires: WireFormats, name: str) -> WireFormat:
    """The wire format with that name; ConfigError lists the known names for any other."""
    if found := wires.get(name):
        return found
    raise ConfigError(f"wire format {name!r} is not known: known are {', '.join(wires)}")
