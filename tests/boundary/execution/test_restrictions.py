"""The exit code of a restricted command shows which signal has ended the command."""

import signal

import pytest

from hermes.boundary.execution.restrictions import exit_code, limit_of


@pytest.mark.parametrize(
    ("status", "wrapped", "code"),
    [
        (3 << 8, True, 3),
        (143 << 8, True, -15),
        (143 << 8, False, 143),
        (255 << 8, True, 255),
        (signal.SIGKILL, True, -9),
        (signal.SIGKILL, False, -9),
    ],
)
def test_bubblewrap_reports_a_signal_as_an_exit_code(status: int, wrapped: bool, code: int) -> None:
    assert exit_code(status, wrapped=wrapped) == code


def test_some_signals_mean_that_a_limit_was_exceeded() -> None:
    assert limit_of(-signal.SIGXFSZ) == limit_of(128 + signal.SIGXFSZ) == "file size"
    assert limit_of(-signal.SIGXCPU) == "CPU time"
    assert limit_of(0) == limit_of(1) == limit_of(-9) == ""
