"""The tools at hand, and which of them a turn may use."""

from collections.abc import Iterable, Mapping

from hermes.types.errors import ConfigError
from hermes.types.tools import Tool
from hermes.types.turns import Turn


class Registry:
    """Every tool by name; the same for each turn until toolsets tell agents apart."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ConfigError(f"two tools are named {tool.name!r}")
            self._tools[tool.name] = tool

    def for_turn(self, turn: Turn) -> Mapping[str, Tool]:
        return self._tools
