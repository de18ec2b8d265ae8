"""Measures the CPU time that the danger detector needs for random shell commands and for deeply
nested ones."""

from benchmarks.sizes import Sizes
from benchmarks.stage import Stage
from hermes.testing.fuzzed_commands import judge_cost


async def danger(stage: Stage, sizes: Sizes) -> None:
    cost = judge_cost(sizes.fuzzed_commands)
    stage.record.put("danger.p99", cost.p99)
    stage.record.put("danger.growth", cost.growth)
    stage.record.put("danger.unjudged", cost.unjudged)
