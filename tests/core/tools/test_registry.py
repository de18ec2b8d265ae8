"""The tools at hand."""

import pytest

from hermes.core.tools.registry import Registry
from hermes.testing.tools import append, ask
from hermes.testing.turns import a_turn
from hermes.types.errors import ConfigError


def test_a_turn_finds_its_tools_by_name() -> None:
    assert dict(Registry([append, ask]).for_turn(a_turn())) == {"append": append, "ask": ask}


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="'append'"):
        Registry([append, append])
