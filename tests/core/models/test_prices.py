"""The cost of a model call is computed from the price, unless the provider reports the cost."""

import pytest

from hermes.core.models.prices import priced
from hermes.types.events import UsageReported
from hermes.types.profile import Price

USED = UsageReported(prompt_tokens=1_000_000, completion_tokens=100_000, cached_tokens=800_000)


@pytest.mark.parametrize(
    ("price", "dollars"),
    [
        (None, None),
        (Price(input=2.0, output=10.0), 3.0),
        (Price(input=2.0, output=10.0, cached=0.5), 1.8),
        (Price(input=2.0, output=10.0, cached=0.0), 1.4),
        (Price(input=0.0, output=0.0), 0.0),
    ],
)
def test_the_cost_is_computed_from_the_price(price: Price | None, dollars: float | None) -> None:
    usage = priced(USED, price)
    assert usage.cost == (None if dollars is None else pytest.approx(dollars))
    assert usage.prompt_tokens == USED.prompt_tokens


def test_the_providers_own_figure_takes_precedence() -> None:
    usage = UsageReported(prompt_tokens=5, completion_tokens=5, cost=0.25)
    assert priced(usage, Price(input=1.0, output=1.0)).cost == 0.25
