"""Durations are formatted in the largest suitable unit."""

import pytest

from hermes.text.durations import rounded_duration


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (119, "119 s"),
        (245, "4 min"),
        (2 * 3600, "2 h"),
        (47 * 3600, "47 h"),
        (3.4 * 86_400, "3 days"),
    ],
)
def test_a_duration_has_one_unit(seconds: float, expected: str) -> None:
    assert rounded_duration(seconds) == expected
