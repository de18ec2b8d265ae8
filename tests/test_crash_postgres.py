"""The gateway on PostgreSQL is killed at every point and at random, and keeps all guarantees."""

import pytest

from tests.testing.test_crash import crash

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("scenario", ["append", "queued", "client-tools-session", "recovery"])
def test_a_kill_at_any_point_breaks_no_guarantee(scenario: str) -> None:
    crash("--scenario", scenario, "--store", "postgres")


def test_kills_at_random_points_break_no_guarantee() -> None:
    load = ["--messages", "100", "--chats", "20", "--kills", "4", "--seed", "7", "--seconds", "60"]
    crash(*load, "--store", "postgres")
