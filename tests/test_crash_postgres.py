"""The gateway on PostgreSQL is killed at many points and at random, and keeps all guarantees.

`make crash STORE=postgres` kills it at all points of all scenarios.
"""

import pytest

from tests.testing.test_crash import crash

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize("scenario", ["append", "queued", "client-tools-session", "recovery"])
def test_a_kill_at_any_fifth_point_breaks_no_guarantee(scenario: str) -> None:
    crash("--scenario", scenario, "--points", "5", "--store", "postgres")


def test_kills_at_random_points_break_no_guarantee() -> None:
    load = ["--messages", "100", "--chats", "20", "--kills", "4", "--seed", "7", "--seconds", "60"]
    crash(*load, "--store", "postgres")
