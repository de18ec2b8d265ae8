"""Computes the cost of a model call."""

from msgspec.structs import replace

from hermes.types.events import UsageReported
from hermes.types.profile import Price

MILLION = 1_000_000


def priced(usage: UsageReported, price: Price | None) -> UsageReported:
    """Returns the usage with its cost: the cost that the provider has reported, or otherwise the
    cost that is computed from the price. If both are unknown, the usage has no cost."""
    if usage.cost is not None or price is None:
        return usage
    cached = price.input if price.cached is None else price.cached
    cost = (
        (usage.prompt_tokens - usage.cached_tokens) * price.input
        + usage.cached_tokens * cached
        + usage.completion_tokens * price.output
    )
    return replace(usage, cost=cost / MILLION)
