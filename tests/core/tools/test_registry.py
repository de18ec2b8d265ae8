"""The tools at hand."""

import pytest
from msgspec.structs import replace

from hermes.control.routing import DEFAULT_AGENT
from hermes.core.tools.registry import Registry
from hermes.testing.tools import append, ask, slow
from hermes.testing.turns import a_turn
from hermes.types.errors import ConfigError
from hermes.types.profile import AgentProfile


def test_a_turn_finds_its_tools_by_name() -> None:
    assert dict(Registry([append, ask]).for_turn(a_turn())) == {"append": append, "ask": ask}


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="'append'"):
        Registry([append, append])


def test_an_empty_list_for_a_platform_is_no_tool_at_all() -> None:
    profile = AgentProfile(id=DEFAULT_AGENT, platform_toolsets={"p": ()})
    assert Registry([slow]).for_turn(replace(a_turn(), profile=profile)) == {}
