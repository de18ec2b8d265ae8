"""All tools by name, and the ones that a turn may use."""

from collections.abc import Iterable, Mapping, Sequence

from hermes.types.errors import ConfigError
from hermes.types.tools import AnyTool
from hermes.types.turns import Turn

SETS: Mapping[str, tuple[str, ...]] = {
    "default": ("files", "terminal", "web", "memory", "sessions", "todo", "clarify", ""),
    "safe": ("web", "todo", "clarify"),
    "none": (),
}
"""Sets of sets; any toolset and any single tool can be named beside them. A tool without a set is
an embedder's own."""


class Registry:
    """Every tool by name, and the sets that they belong to."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self._tools: dict[str, AnyTool] = {}
        self._chosen: dict[tuple[tuple[str, ...], tuple[str, ...]], Mapping[str, AnyTool]] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ConfigError(f"two tools are named {tool.name!r}")
            self._tools[tool.name] = tool

    def for_turn(self, turn: Turn) -> Mapping[str, AnyTool]:
        profile = turn.profile
        allowed = profile.platform_toolsets.get(turn.source.platform, profile.toolsets)
        key = (allowed, profile.disabled_toolsets)
        if key not in self._chosen:
            names = self._members(allowed) - self._members(profile.disabled_toolsets)
            self._chosen[key] = {name: tool for name, tool in self._tools.items() if name in names}
        return self._chosen[key]

    def check(self, place: str, names: Sequence[str]) -> None:
        """ConfigError for a name that is neither a tool nor a set of them."""
        sets = {*SETS, *(name for members in SETS.values() for name in members)}
        known = {*sets, *self._tools, *(tool.toolset for tool in self._tools.values())}
        for name in names:
            if name not in known:
                raise ConfigError(
                    f"{place}: {name!r} is no toolset and no tool; there are"
                    f" {', '.join(sorted(known - {''}))}"
                )

    def _members(self, names: Sequence[str]) -> set[str]:
        """The tools that are named, by themselves or by a set."""
        sets = {inner for name in names for inner in SETS.get(name, (name,))}
        return {
            tool.name for tool in self._tools.values() if tool.name in sets or tool.toolset in sets
        }
