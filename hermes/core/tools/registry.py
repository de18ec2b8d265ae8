"""Selects the tools that a turn may use."""

from collections.abc import Iterable, Mapping, Sequence

from hermes.types.errors import ConfigError
from hermes.types.people import Role
from hermes.types.tools import AnyTool
from hermes.types.turns import Turn

SETS: Mapping[str, tuple[str, ...]] = {
    "default": (
        *("files", "terminal", "web", "memory", "sessions", "todo", "clarify", "messaging", ""),
    ),
    "safe": ("web", "todo", "clarify"),
    "none": (),
}
"""Groups of toolsets, by name. Settings can name such a group, a toolset or a single tool. The
toolset with the empty name contains the tools of a program that embeds Hermes."""

UNSUPPORTED_SETS = (
    *("browser", "code_execution", "computer_use", "context_engine", "cronjob", "delegation"),
    *("discord", "discord_admin", "feishu_doc", "feishu_drive", "homeassistant", "image_gen"),
    *("kanban", "moa", "no_mcp", "project", "skills", "spotify", "tts", "video", "video_gen"),
    *("vision", "x_search", "yuanbao"),
)
"""Toolsets of the program Hermes Agent that have no tools in Hermes yet."""
_FULL_SETS = (
    *("acp", "api-server", "bluebubbles", "cli", "cron", "dingtalk", "discord", "email", "feishu"),
    *("gateway", "homeassistant", "matrix", "mattermost", "qqbot", "signal", "slack", "sms"),
    *("telegram", "wecom", "wecom-callback", "weixin", "whatsapp", "yuanbao"),
)
HERMES_AGENT_SETS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys((f"hermes-{name}" for name in _FULL_SETS), SETS["default"]),
    "hermes-webhook": ("web", "clarify"),
    "coding": ("files", "terminal", "web", "todo", "clarify"),
    "debugging": ("files", "terminal", "web"),
    "file": ("files",),
    "search": ("web_search",),
    "session_search": ("sessions",),
    **dict.fromkeys(UNSUPPORTED_SETS, ()),
}
"""Maps the toolset names in a configuration of the program Hermes Agent to our toolsets."""


class Registry:
    """Holds all tools by name, and selects them by toolset."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self._tools: dict[str, AnyTool] = {}
        self._chosen: dict[tuple[tuple[str, ...], tuple[str, ...]], Mapping[str, AnyTool]] = {}
        """The results of earlier selections. The key contains the allowed toolsets and the refused
        toolsets."""
        for tool in tools:
            if tool.name in self._tools:
                raise ConfigError(f"two tools are named {tool.name!r}: rename one of them")
            self._tools[tool.name] = tool

    def for_turn(self, turn: Turn) -> Mapping[str, AnyTool]:
        """Returns the tools that the turn may use: the tools that the settings offer on this
        platform and that the role of the turn's person permits."""
        profile = turn.profile
        allowed = profile.platform_toolsets.get(turn.source.platform, profile.toolsets)
        refused = profile.disabled_toolsets
        refused += profile.admin_tools if turn.role < Role.ADMIN else ()
        refused += profile.owner_tools if turn.role < Role.OWNER else ()
        key = (allowed, refused)
        if key not in self._chosen:
            names = self._members(allowed) - self._members(refused)
            self._chosen[key] = {name: tool for name, tool in self._tools.items() if name in names}
        return self._chosen[key]

    def offers(self, name: str, allowed: Sequence[str], disabled: Sequence[str]) -> bool:
        """Returns whether the tool is in the allowed toolsets and not in the disabled toolsets."""
        return name in self._members(allowed) - self._members(disabled)

    def check(self, place: str, names: Sequence[str]) -> None:
        """Raises ConfigError for a name that is neither a tool nor a toolset."""
        sets = {*SETS, *(name for members in SETS.values() for name in members)}
        known = {*sets, *self._tools, *(tool.toolset for tool in self._tools.values())}
        for name in names:
            if name not in known and name not in HERMES_AGENT_SETS:
                raise ConfigError(
                    f"{place}: {name!r} is neither a toolset nor a tool: choose from"
                    f" {', '.join(sorted(known - {''}))}"
                )

    def _members(self, names: Sequence[str]) -> set[str]:
        """Returns the names of the tools that `names` lists, either directly or through a
        toolset."""
        sets = {inner for name in names for inner in SETS.get(name, (name,))}
        # For the name of a toolset of Hermes Agent, adds our toolsets. The name itself is not
        # removed from `sets`, because a plugin may have a toolset with this name.
        sets.update(inner for name in names for inner in HERMES_AGENT_SETS.get(name, ()))
        return {
            tool.name for tool in self._tools.values() if tool.name in sets or tool.toolset in sets
        }
