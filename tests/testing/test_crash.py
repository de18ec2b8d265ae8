"""The gateway is killed at every point and at random, and keeps all guarantees."""

import pytest

from hermes.testing.crash import SCENARIOS, main

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def crash(*arguments: str) -> None:
    """Runs the crash harness. It prints the violations. All runs of this process share one server
    that forks gateways."""
    assert main.main(arguments, standalone_mode=False) == 0


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_any_point_breaks_no_guarantee(scenario: str) -> None:
    crash("--scenario", scenario)


def test_kills_at_random_points_break_no_guarantee() -> None:
    crash("--messages", "200", "--chats", "20", "--kills", "5", "--seed", "7", "--seconds", "60")
