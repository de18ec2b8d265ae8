"""The toolsets select the tools of a turn."""

import pytest
from msgspec.structs import replace

from hermes.control.routing import DEFAULT_AGENT
from hermes.core.tools.registry import Registry
from hermes.testing.tools import append, ask, slow
from hermes.testing.turns import a_turn
from hermes.types.errors import ConfigError
from hermes.types.people import Role
from hermes.types.profile import AgentProfile


def test_a_turn_finds_its_tools_by_name() -> None:
    assert dict(Registry([append, ask]).for_turn(a_turn())) == {"append": append, "ask": ask}


def test_two_tools_with_the_same_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="'append'"):
        Registry([append, append])


def test_an_empty_list_means_no_tools_on_this_platform() -> None:
    profile = AgentProfile(id=DEFAULT_AGENT, platform_toolsets={"p": ()})
    assert Registry([slow]).for_turn(replace(a_turn(), profile=profile)) == {}


def names(*toolsets: str, disabled: tuple[str, ...] = ()) -> set[str]:
    profile = AgentProfile(id=DEFAULT_AGENT, toolsets=toolsets, disabled_toolsets=disabled)
    tools = [
        replace(slow, name=name, toolset=toolset)
        for name, toolset in (("read_file", "files"), ("terminal", "terminal"), ("look", "browser"))
    ]
    registry = Registry(tools)
    registry.check("agent.toolsets", toolsets)
    return set(registry.for_turn(replace(a_turn(), profile=profile)))


def test_the_toolsets_of_hermes_agent_are_known() -> None:
    assert names("hermes-cli") == names("hermes-telegram") == {"read_file", "terminal"}
    assert names("file") == {"read_file"}
    assert names("hermes-webhook", "vision") == set()
    assert names("hermes-cli", disabled=("file",)) == {"terminal"}


@pytest.mark.parametrize(
    ("role", "offered"),
    [
        (Role.USER, {"look"}),
        (Role.ADMIN, {"look", "terminal"}),
        (Role.OWNER, {"look", "terminal", "read_file"}),
    ],
)
def test_a_role_is_offered_its_own_tools_only(role: Role, offered: set[str]) -> None:
    profile = AgentProfile(
        id=DEFAULT_AGENT,
        toolsets=("default", "look"),
        admin_tools=("terminal",),
        owner_tools=("files",),
    )
    tools = [
        replace(slow, name=name, toolset=toolset)
        for name, toolset in (("read_file", "files"), ("terminal", "terminal"), ("look", "browser"))
    ]
    turn = replace(a_turn(), profile=profile, role=role)
    assert set(Registry(tools).for_turn(turn)) == offered


def test_a_plugin_may_have_a_toolset_with_a_hermes_agent_name() -> None:
    assert names("browser") == {"look"}


def test_a_misspelt_toolset_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"agent.toolsets: 'hermes-clli' is neither a toolset nor a tool"
    ):
        names("hermes-clli")
