"""Counts collisions of session keys among a million random conversations with hostile ids."""

from benchmarks.sizes import Sizes
from benchmarks.stage import Stage
from hermes.testing.session_keys import count_collisions


async def session_keys(stage: Stage, sizes: Sizes) -> None:
    different, collisions = count_collisions(sizes.session_keys)
    stage.record.put("keys.different", different)
    stage.record.put("keys.collisions", collisions)
