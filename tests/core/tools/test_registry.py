"""The tools at hand."""

import pytest

from hermes.core.tools.registry import Registry
from hermes.testing.tools import append, ask
from hermes.types.errors import ConfigError
from hermes.types.identity import DEFAULT_AGENT, SessionKey, TurnId
from hermes.types.profile import AgentProfile
from hermes.types.turns import Turn


def test_a_turn_finds_its_tools_by_name() -> None:
    turn = Turn(
        id=TurnId("t"),
        session=SessionKey(agent=DEFAULT_AGENT, platform="p", kind="private", chat="1"),
        agent=DEFAULT_AGENT,
        profile=AgentProfile(),
        history=(),
    )
    assert dict(Registry([append, ask]).for_turn(turn)) == {"append": append, "ask": ask}


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="'append'"):
        Registry([append, append])
