"""Every message is answered once, although the gateway is killed and the homeserver restarted."""

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_kills_and_a_restart_of_the_homeserver_break_no_guarantee() -> None:
    size = ["--rooms", "4", "--messages", "5", "--kills", "2", "--seed", "7", "--seconds", "200"]
    command = [sys.executable, "-m", "hermes.testing.matrix_crash", *size]
    done = subprocess.run(command, capture_output=True, text=True, timeout=290, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
