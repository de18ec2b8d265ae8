"""Finds wire formats by name."""

from collections.abc import Iterable, Mapping

from hermes.core.models.anthropic import AnthropicMessages
from hermes.core.models.openai_chat import OpenAIChat
from hermes.core.models.openai_responses import OpenAIResponses
from hermes.types.errors import ConfigError
from hermes.types.models import WireFormat

WireFormats = Mapping[str, WireFormat]


def builtin_wire_formats() -> tuple[WireFormat, ...]:
    return (OpenAIChat(), OpenAIResponses(), AnthropicMessages())


def wire_formats(wires: Iterable[WireFormat]) -> WireFormats:
    """Returns the wire formats by name. Raises ConfigError if two have the same name."""
    found: dict[str, WireFormat] = {}
    for wire in wires:
        if wire.name in found:
            raise ConfigError(
                f"two plugins register the wire format {wire.name!r}: remove one of them"
            )
        found[wire.name] = wire
    return found


def find_wire(wires: WireFormats, name: str) -> WireFormat:
    """Returns the wire format with this name. For other names, raises a ConfigError with the known
    names."""
    if found := wires.get(name):
        return found
    raise ConfigError(f"wire format {name!r} is unknown: choose one of {', '.join(wires)}")
