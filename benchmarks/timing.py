"""Measures whether the time to refuse a wrong key reveals how much of the key is right."""

import math
import random
import statistics
import time
from collections.abc import Sequence

from benchmarks.load import percentile
from benchmarks.sizes import Sizes
from benchmarks.stage import Stage
from hermes.entry.http.auth import Auth
from hermes.entry.http.errors import ApiError

KEY = "0123456789abcdef0123456789abcdef"
FORGETTING = 100.0
"""Seconds between two guesses of the key, on a simulated clock. The gateway delays its answers
after many wrong keys, but not after such a pause. So the measured time has no artificial delay."""
KEPT = 0.9
"""Share of the samples that is used. The slowest samples are dropped, because other processes have
slowed them down."""


async def timing(stage: Stage, sizes: Sizes) -> None:
    """Compares the refusal times of two kinds of wrong keys: keys that have no byte in common with
    the right key, and keys that differ only in the last byte."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += FORGETTING
        return now

    auth, chance = Auth(KEY, clock), random.Random(1)
    keys = ("x" + KEY[1:], KEY[:-1] + "x")
    samples: tuple[list[float], list[float]] = ([], [])
    for _ in range(sizes.samples):
        place = chance.randrange(2)
        samples[place].append(await _seconds(auth, keys[place]))
    limit = percentile([*samples[0], *samples[1]], KEPT)
    one, other = ([value for value in own if value <= limit] for own in samples)
    stage.record.put("timing.t", abs(welch(one, other)))


async def _seconds(auth: Auth, key: str) -> float:
    began = time.perf_counter()
    try:
        await auth.principal(f"Bearer {key}", "127.0.0.1")
    except ApiError:
        return time.perf_counter() - began
    raise AssertionError("a wrong key was accepted")


def welch(one: Sequence[float], other: Sequence[float]) -> float:
    """Returns Welch's t: the difference of the means, divided by the standard error of this
    difference."""
    spread = statistics.variance(one) / len(one) + statistics.variance(other) / len(other)
    return (statistics.fmean(one) - statistics.fmean(other)) / math.sqrt(spread)
