"""Errors carry a code, a status and a pause; the tree in the docstring is the tree in the code."""

import re

from hermes.types import errors
from hermes.types.errors import HermesError, RateLimited, StoreUnavailable, TooBusy
from hermes.types.turns import Failed

LINE = re.compile(r"^([│ ]*)[├└]── (\w+) +(\w+) +(\d{3}) ", re.M)


def declared() -> dict[str, tuple[str, int, int]]:
    """Code, status and depth of every class that the module declares."""
    found = {}
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, HermesError) and kind is not HermesError:
            depth = len(kind.__mro__) - len(HermesError.__mro__)
            found[name] = (kind.code, kind.status, depth)
    return found


def test_the_docstring_draws_the_tree_as_it_is() -> None:
    drawn = {
        name: (code, int(status), len(indent) // 4 + 1)
        for indent, name, code, status in LINE.findall(errors.__doc__ or "")
    }
    assert drawn == declared()


def test_every_kind_of_error_has_a_code_of_its_own_except_damage() -> None:
    codes = [code for name, (code, _, _) in declared().items() if name != "StoreDamaged"]
    assert len(set(codes)) == len(codes)
    assert HermesError.code not in codes


def test_a_pause_is_that_of_the_error_or_else_of_its_kind() -> None:
    assert RateLimited("slow").retry_after is None
    assert RateLimited("slow", 3.0).retry_after == 3.0
    assert TooBusy("full").retry_after == 1.0
    assert TooBusy("full", 0.0).retry_after == 0.0
    assert str(StoreUnavailable("disk full")) == "disk full"


def test_a_failed_turn_carries_what_its_error_carries() -> None:
    failed = Failed.of(RateLimited("slow", 3.0))
    assert failed == Failed(reason="slow", code="rate_limited", status=429, retry_after=3.0)
