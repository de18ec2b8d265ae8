"""A pairing code expires, and works only once. Wrong codes lock out only the user who has tried
them."""

from pathlib import Path

from msgspec.structs import replace

from hermes.state import pairing
from hermes.state.pairing import CODE_SECONDS, LOCKED_SECONDS, OPERATOR, REQUEST_SECONDS
from hermes.state.pairing import PairingRequest as Wanted
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store


def wanted(user: str = "7", at: float = 100.0, account: str = "chat") -> Wanted:
    return Wanted(account=account, user_id=user, user_name=None, chat_id=user, made_at=at)


async def test_a_user_has_one_code_and_gets_another_after_some_minutes(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        assert await store.run(pairing.request, "h1", wanted())
        assert not await store.run(pairing.request, "h2", wanted(at=101.0))
        later = 100.0 + REQUEST_SECONDS
        assert await store.run(pairing.request, "h3", wanted(at=later))
        assert await store.read(pairing.requested, "h1", "chat", later) is None
        assert await store.read(pairing.requested, "h3", "chat", later) == wanted(at=later)
        assert await store.read(pairing.requested, "h3", "other", later) is None
        assert await store.read(pairing.requests, later) == [wanted(at=later)]
        long = replace(wanted("8"), user_name="é\0" * 100)
        assert await store.run(pairing.request, "h4", long)
        (known, _) = await store.read(pairing.requests, 101.0)
        assert known.described == "user 8 of chat, named “" + "é\ufffd" * 50 + "”"


async def test_a_code_expires_after_an_hour(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(pairing.request, "h1", wanted())
        await store.run(pairing.offer, "h2", "chat", "owner", 100.0)
        last, end = 99.0 + CODE_SECONDS, 100.0 + CODE_SECONDS
        assert await store.read(pairing.requested, "h1", "chat", last)
        assert await store.read(pairing.offered, "h2", "chat", last) == "owner"
        assert await store.read(pairing.requested, "h1", "chat", end) is None
        assert await store.read(pairing.offered, "h2", "chat", end) is None
        assert await store.read(pairing.requests, end) == []
        await store.run(pairing.offer, "h3", "chat", "owner", end)
        assert await rows(store, "select hash from pairing_codes") == [("h3",)]


async def test_codes_of_admins_and_codes_of_strangers_are_not_confused(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(pairing.request, "h1", wanted())
        await store.run(pairing.offer, "h2", "chat", "owner", 100.0)
        assert await store.read(pairing.offered, "h1", "chat", 101.0) is None
        assert await store.read(pairing.requested, "h2", "chat", 101.0) is None
        await store.run(pairing.use_up, "h2")
        assert await store.read(pairing.offered, "h2", "chat", 101.0) is None
        assert await store.run(pairing.withdraw, "chat", "7")
        assert not await store.run(pairing.withdraw, "chat", "7")


async def test_a_full_list_of_codes_refuses_new_users_and_keeps_the_earlier_users(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        await rows(
            store,
            "with recursive n (i) as (select 1 union all select i + 1 from n where i < ?)"
            " insert into pairing_codes (hash, account, user_id, chat_id, made_by, made_at)"
            " select 'x' || i, 'chat', 'u' || i, 'c', 'u', 100.0 from n",
            pairing.MOST_REQUESTS,
        )
        assert not await store.run(pairing.request, "h1", wanted(at=200.0))
        assert await store.run(pairing.request, "h2", wanted(account="other", at=200.0))
        assert await store.run(pairing.request, "h3", wanted("u1", at=100.0 + REQUEST_SECONDS))
        assert len(await store.read(pairing.requests, 200.0)) == pairing.MOST_REQUESTS + 1


async def test_after_five_wrong_codes_a_user_is_locked_for_an_hour(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        left = [await store.run(pairing.count_wrong, "chat", OPERATOR, 100.0 + n) for n in range(5)]
        assert left == [4, 3, 2, 1, 0]
        end = 104.0 + LOCKED_SECONDS
        assert await store.read(pairing.locked_until, "chat", OPERATOR, end - 1) == end
        assert await store.read(pairing.locked_until, "chat", OPERATOR, end) is None
        for other in (("chat", "7"), ("other", OPERATOR)):
            assert await store.read(pairing.locked_until, *other, 105.0) is None
        assert await store.run(pairing.count_wrong, "chat", OPERATOR, end) == 4
        await store.run(pairing.forget_wrong, "chat", OPERATOR)
        assert await store.run(pairing.count_wrong, "chat", OPERATOR, end) == 4


async def test_wrong_codes_are_forgotten_after_an_hour(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        for n in range(4):
            await store.run(pairing.count_wrong, "chat", OPERATOR, 100.0 + n)
        assert await store.run(pairing.count_wrong, "chat", OPERATOR, 100.0 + LOCKED_SECONDS) == 4
