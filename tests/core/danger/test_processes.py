"""Programs that end many processes need approval."""

import pytest

from hermes.core.danger.detector import judge


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        ("kill 5", "run"),
        ("kill -9 5", "run"),
        ("kill -1 5", "run"),
        ("kill -l", "run"),
        ("kill -0 5", "run"),
        ('kill "$pid"', "run"),
        ("kill -9 $(pgrep a)", "ask"),
        ("kill 1", "ask"),
        ("kill -9 -1", "never"),
        ("kill -- -1", "never"),
        ("kill -1", "never"),
        ("kill -s KILL -1", "never"),
        ("pkill a", "ask"),
        ("pkill -0 a", "run"),
        ("killall -l", "run"),
        ("killall a", "ask"),
        ("pkill -u me", "ask"),
        ("killall5 -9", "never"),
    ],
)
def test_many_processes_are_not_ended_without_approval(command: str, outcome: str) -> None:
    assert judge(command).outcome == outcome
