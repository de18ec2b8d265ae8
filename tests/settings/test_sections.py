"""The sections of the configuration."""

import msgspec
import pytest

from hermes.settings.sections import (
    AgentSettings,
    AuxiliarySettings,
    ModelSettings,
    WebSettings,
)

WEEK = 7 * 86_400.0


@pytest.mark.parametrize(
    "section",
    [
        ModelSettings(api_key="opensesame"),
        AuxiliarySettings(api_key="opensesame"),
        WebSettings(brave_key="opensesame", tavily_key="opensesame"),
    ],
)
def test_a_section_does_not_show_its_keys(section: msgspec.Struct) -> None:
    assert "opensesame" not in repr(section)


def test_a_turn_without_a_limit_gets_a_week() -> None:
    assert AgentSettings(max_turns=3, turn_timeout=5.0).budget.seconds == 5.0
    assert AgentSettings(turn_timeout=0.0).budget.seconds == WEEK


@pytest.mark.parametrize(
    ("section", "given"),
    [
        (ModelSettings, {"context_length": 0}),
        (ModelSettings, {"input_price": -1.0}),
        (ModelSettings, {"max_tokens": "many"}),
        (AgentSettings, {"max_turns": 0}),
        (AgentSettings, {"clarify_timeout": 0.0}),
    ],
)
def test_a_number_out_of_its_range_is_refused(
    section: type[msgspec.Struct], given: dict[str, object]
) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(given, section)


def test_the_wire_format_may_be_any_name() -> None:
    found = msgspec.convert({"wire": "telegraph"}, ModelSettings)
    assert (found.wire, ModelSettings().wire) == ("telegraph", "auto")
