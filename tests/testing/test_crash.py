"""The gateway is killed at every point and at random, and keeps all guarantees."""

import subprocess
import sys

import pytest

from hermes.testing.crash import SCENARIOS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def crash(*arguments: str) -> None:
    """Runs the crash harness. If it fails, the error contains the violations."""
    command = [sys.executable, "-m", "hermes.testing.crash", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=290, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_any_point_breaks_no_guarantee(scenario: str) -> None:
    crash("--scenario", scenario)


def test_kills_at_random_points_break_no_guarantee() -> None:
    crash("--messages", "200", "--chats", "20", "--kills", "5", "--seed", "7", "--seconds", "60")
