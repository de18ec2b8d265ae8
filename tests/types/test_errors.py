"""The error classes have the right fields, and the docstring of their module shows the tree of
classes."""

import re

import pytest

from hermes.types import errors
from hermes.types.errors import HermesError, RateLimited, StoreUnavailable, TooBusy
from hermes.types.turns import Failed

LINE = re.compile(r"^([│ ]*)[├└]── (\w+) +(\w+) +(\d{3})([* ])", re.M)


def declared() -> dict[str, tuple[str, int, int, bool]]:
    """Returns four values for every class that the module declares: its code, its status, its depth
    in the class tree, and `temporary`."""
    found = {}
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, HermesError) and kind is not HermesError:
            depth = len(kind.__mro__) - len(HermesError.__mro__)
            found[name] = (kind.code, kind.status, depth, kind.temporary)
    return found


def test_the_docstring_shows_the_real_class_tree() -> None:
    drawn = {
        name: (code, int(status), len(indent) // 4 + 1, mark == "*")
        for indent, name, code, status, mark in LINE.findall(errors.__doc__ or "")
    }
    assert drawn == declared()


def test_every_error_class_has_its_own_code_except_store_damaged() -> None:
    codes = [code for name, (code, *_) in declared().items() if name != "StoreDamaged"]
    assert len(set(codes)) == len(codes)
    assert HermesError.code not in codes


def test_retry_after_comes_from_the_error_or_from_its_class() -> None:
    assert RateLimited("slow").retry_after is None
    assert RateLimited("slow", 3.0).retry_after == 3.0
    assert TooBusy("full").retry_after == 1.0
    assert TooBusy("full", 0.0).retry_after == 0.0
    assert str(StoreUnavailable("disk full")) == "disk full"


def test_a_failed_turn_has_the_data_of_its_error() -> None:
    failed = Failed.of(RateLimited("slow", 3.0))
    assert failed == Failed(
        reason="slow", code="rate_limited", status=429, retry_after=3.0, temporary=True
    )


@pytest.mark.parametrize(
    ("kind", "temporary"),
    [
        (errors.ConfigError, True),
        (errors.StoreUnavailable, True),
        (errors.IntakeClosed, True),
        (errors.TooBusy, True),
        (errors.RateLimited, True),
        (errors.Disconnected, True),
        (errors.AuthFailed, True),
        (errors.Rejected, False),
        (errors.TooLong, False),
        (errors.ClaimLost, False),
        (errors.ToolFailed, False),
    ],
)
def test_an_error_says_whether_the_same_request_may_succeed_later(
    kind: type[HermesError], temporary: bool
) -> None:
    assert Failed.of(kind("why")).temporary is temporary
