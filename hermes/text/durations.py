"""Formats durations for people."""

_UNITS = ((86_400, "days"), (3600, "h"), (60, "min"))


def rounded_duration(seconds: float) -> str:
    """Returns the duration in the largest unit that gives 2 or more: `45 s`, `4 min`, `30 h`."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
