"""Keys: one is right, and guessing is slowed down."""

import pytest

from hermes.entry.http.auth import ADDRESSES, GUESSES, Auth
from hermes.entry.http.errors import ApiError
from hermes.types.identity import OWNER, Principal

KEY = "the-key"


def refused(guard: Auth, authorization: str, address: str = "1.2.3.4") -> ApiError:
    with pytest.raises(ApiError) as caught:
        guard.principal(authorization, address)
    return caught.value


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_right_key_names_its_principal(scheme: str) -> None:
    assert Auth(KEY).principal(f"{scheme} {KEY}", "") == Principal(name="default", person=OWNER)


@pytest.mark.parametrize(
    "authorization",
    ["", KEY, f"Basic {KEY}", "Bearer", "Bearer ", f"Bearer {KEY}x", f"Bearer{KEY}", "Bearer é"],
)
def test_anything_else_is_refused(authorization: str) -> None:
    error = refused(Auth(KEY), authorization)
    assert (error.status, error.code) == (401, "invalid_api_key")


def test_an_address_that_guesses_is_told_to_wait_and_others_are_not() -> None:
    guard = Auth(KEY)
    codes = [refused(guard, f"Bearer {number}").code for number in range(GUESSES + 1)]
    assert codes == ["invalid_api_key"] * GUESSES + ["too_many_wrong_keys"]
    last = refused(guard, "Bearer again")
    assert last.status == 429
    assert last.retry_after is not None
    assert 0 < last.retry_after <= 60
    assert refused(guard, "Bearer other", "5.6.7.8").code == "invalid_api_key"
    assert guard.principal(f"Bearer {KEY}", "1.2.3.4").name == "default"


def test_a_request_without_a_key_is_no_guess() -> None:
    guard = Auth(KEY)
    codes = {refused(guard, "").code for _ in range(GUESSES + 5)}
    assert codes == {"invalid_api_key"}


def test_after_a_minute_an_address_may_try_again() -> None:
    now = 1000.0
    guard = Auth(KEY, clock=lambda: now)
    for _ in range(GUESSES):
        refused(guard, "Bearer wrong")
    assert refused(guard, "Bearer wrong").code == "too_many_wrong_keys"
    now += 61
    assert refused(guard, "Bearer wrong").code == "invalid_api_key"


def test_only_so_many_addresses_are_remembered() -> None:
    guard = Auth(KEY)
    for number in range(ADDRESSES + 10):
        refused(guard, "Bearer wrong", f"address {number}")
    assert len(guard._guesses) == ADDRESSES
