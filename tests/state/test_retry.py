"""A transaction is retried a few times after a conflict. Every other error is raised at once."""

import pytest

from hermes.state.retry import ATTEMPTS, retried
from hermes.types.errors import StoreUnavailable, TransactionConflict


class Attempts:
    """A function whose first calls fail. `failures` is the number of calls that raise `error`."""

    def __init__(self, failures: int, error: type[Exception] = TransactionConflict) -> None:
        self.made = 0
        self._failures = failures
        self._error = error

    async def __call__(self) -> str:
        self.made += 1
        if self.made <= self._failures:
            raise self._error(f"attempt {self.made}")
        return "done"


@pytest.mark.parametrize("failures", range(ATTEMPTS))
async def test_an_attempt_is_repeated_after_a_conflict(failures: int) -> None:
    attempts = Attempts(failures)
    assert await retried(attempts) == "done"
    assert attempts.made == failures + 1


async def test_the_error_of_the_last_attempt_is_raised() -> None:
    attempts = Attempts(ATTEMPTS)
    with pytest.raises(TransactionConflict, match=f"attempt {ATTEMPTS}"):
        await retried(attempts)
    assert attempts.made == ATTEMPTS


@pytest.mark.parametrize("error", [StoreUnavailable, ValueError])
async def test_an_error_whose_outcome_may_be_unknown_is_never_retried(
    error: type[Exception],
) -> None:
    attempts = Attempts(1, error)
    with pytest.raises(error, match="attempt 1"):
        await retried(attempts)
    assert attempts.made == 1
