"""Keys are checked, and guesses are delayed."""

import time

import anyio
import pytest

from hermes.entry.http.auth import (
    ADDRESSES,
    DELAY_SECONDS,
    DELAYED,
    GUESSES,
    KEY_CHARACTERS,
    Auth,
    network_of,
)
from hermes.entry.http.errors import ApiError
from hermes.testing.running import until
from hermes.types.identity import OWNER, Principal

KEY = "the-key"


async def refused(guard: Auth, authorization: str, address: str = "1.2.3.4") -> ApiError:
    with pytest.raises(ApiError) as caught:
        await guard.principal(authorization, address)
    return caught.value


async def guessing(guard: Auth, times: int, address: str = "1.2.3.4") -> list[ApiError]:
    return [await refused(guard, f"Bearer {number}", address) for number in range(times)]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_right_key_gives_its_principal(scheme: str) -> None:
    found = await Auth(KEY).principal(f"{scheme} {KEY}", "")
    assert found == Principal(name="default", person=OWNER)


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        KEY,
        f"Basic {KEY}",
        "Bearer",
        "Bearer ",
        f"Bearer {KEY}x",
        f"Bearer{KEY}",
        "Bearer é",
        f"Bearer {KEY * KEY_CHARACTERS}",
    ],
)
async def test_any_other_key_is_refused(authorization: str) -> None:
    error = await refused(Auth(KEY), authorization)
    assert (error.status, error.code) == (401, "invalid_api_key")


async def test_after_ten_wrong_keys_from_an_address_the_answers_to_it_are_delayed() -> None:
    guard = Auth(KEY)
    begun = time.monotonic()
    codes = [error.code for error in await guessing(guard, GUESSES)]
    assert codes == ["invalid_api_key"] * GUESSES
    assert time.monotonic() - begun < DELAY_SECONDS
    begun = time.monotonic()
    last = await refused(guard, "Bearer again")
    assert time.monotonic() - begun >= 0.9 * DELAY_SECONDS
    assert (last.status, last.code, last.retry_after) == (429, "too_many_wrong_keys", 1.0)


async def test_the_right_key_works_at_once_while_answers_to_wrong_keys_are_delayed() -> None:
    guard = Auth(KEY)
    await guessing(guard, GUESSES)
    async with anyio.create_task_group() as group:
        for number in range(DELAYED + 5):
            group.start_soon(refused, guard, f"Bearer {number}")
        await until(lambda: guard._delayed == DELAYED)
        begun = time.monotonic()
        assert (await guard.principal(f"Bearer {KEY}", "1.2.3.4")).name == "default"
        assert (await refused(guard, "Bearer other", "5.6.7.8")).code == "invalid_api_key"
        assert time.monotonic() - begun < 0.5 * DELAY_SECONDS
        group.cancel_scope.cancel()
    assert guard._delayed == 0


async def test_only_a_limited_number_of_answers_is_delayed() -> None:
    guard = Auth(KEY)
    await guessing(guard, GUESSES)
    async with anyio.create_task_group() as group:
        for number in range(DELAYED):
            group.start_soon(refused, guard, f"Bearer {number}")
        await until(lambda: guard._delayed == DELAYED)
        with anyio.fail_after(0.5 * DELAY_SECONDS):
            codes = {error.code for error in await guessing(guard, 50)}
        assert codes == {"too_many_wrong_keys"}
        group.cancel_scope.cancel()


async def test_a_request_without_a_key_does_not_count_as_a_wrong_key() -> None:
    guard = Auth(KEY)
    codes = {(await refused(guard, "")).code for _ in range(GUESSES + 5)}
    assert codes == {"invalid_api_key"}


async def test_after_a_minute_without_a_wrong_key_an_address_may_try_again() -> None:
    now = 1000.0
    guard = Auth(KEY, clock=lambda: now)
    await guessing(guard, GUESSES)
    now += 59
    assert (await refused(guard, "Bearer wrong")).code == "too_many_wrong_keys"
    now += 59
    assert (await refused(guard, "Bearer wrong")).code == "too_many_wrong_keys"
    now += 61
    assert (await refused(guard, "Bearer wrong")).code == "invalid_api_key"


async def test_only_a_limited_number_of_addresses_is_remembered() -> None:
    guard = Auth(KEY)
    for number in range(ADDRESSES + 10):
        await refused(guard, "Bearer wrong", f"address {number}")
    assert len(guard._guesses) == ADDRESSES


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("a:b", "a:b"),
        ("", ""),
    ],
)
def test_the_addresses_of_an_ipv6_network_count_as_one_address(address: str, network: str) -> None:
    assert network_of(address) == network
