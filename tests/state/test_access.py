"""The store knows which users are paired, and which user ids belong to one person."""

from pathlib import Path

from hermes.state import access
from hermes.state.access import KnownPeople
from hermes.testing.stores import open_test_store
from hermes.types.identity import OWNER, PersonId
from hermes.types.people import Role
from hermes.types.store import Store


async def linked(store: Store) -> dict[str, str]:
    """Returns the person of each linked id."""
    found = await store.read(access.linked_ids)
    return {f"{one.platform}:{one.user_id}": one.person for one in found}


async def test_a_paired_user_keeps_the_first_role_until_the_pairing_is_revoked(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        assert await store.read(access.load_people) == KnownPeople()
        assert not await store.read(access.has_owner)
        await store.run(access.grant, "telegram", "7", "Ann\0", Role.OWNER, OWNER, 1.0)
        await store.run(access.grant, "telegram", "7", "Ann", Role.USER, OWNER, 2.0)
        await store.run(access.grant, "telegram.b", "7", None, Role.USER, "telegram:7", 3.0)
        assert await store.read(access.has_owner)
        people = await store.read(access.load_people)
        assert people.paired == {("telegram", "7"): Role.OWNER, ("telegram.b", "7"): Role.USER}
        first, second = await store.read(access.paired_users)
        assert (first.user_name, first.role, first.granted_at) == ("Ann\ufffd", "owner", 1.0)
        assert (second.account, second.user_name, second.granted_by) == (
            "telegram.b",
            None,
            "telegram:7",
        )
        assert await store.run(access.revoke, "telegram", "7")
        assert not await store.run(access.revoke, "telegram", "7")
        people = await store.read(access.load_people)
        assert people.paired == {("telegram.b", "7"): Role.USER}


async def test_ids_are_linked_to_a_person_and_unlinked(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        ann = PersonId("telegram:7")
        await store.run(access.link, "matrix", "@ann:b", ann, 1.0)
        await store.run(access.link, "matrix", "@ann:b", ann, 2.0)
        await store.run(access.link, "telegram", "7", ann, 3.0)
        assert await linked(store) == {"matrix:@ann:b": "telegram:7"}
        people = await store.read(access.load_people)
        assert people.linked == {("matrix", "@ann:b"): ann}
        assert await store.run(access.unlink, "matrix", "@ann:b")
        assert not await store.run(access.unlink, "matrix", "@ann:b")
        assert await linked(store) == {}


async def test_if_an_id_is_linked_the_ids_that_are_linked_to_it_follow(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(access.link, "a", "2", PersonId("a:1"), 1.0)
        await store.run(access.link, "a", "1", PersonId("b:3"), 2.0)
        assert await linked(store) == {"a:1": "b:3", "a:2": "b:3"}
        await store.run(access.link, "b", "3", OWNER, 3.0)
        assert await linked(store) == {"a:1": "owner", "a:2": "owner", "b:3": "owner"}


async def test_the_other_ids_stay_together_when_their_person_is_unlinked(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        for at, id in enumerate(("2", "3", "4")):
            await store.run(access.link, "a", id, PersonId("a:1"), float(at))
        assert await store.run(access.unlink, "a", "1")
        assert await linked(store) == {"a:3": "a:2", "a:4": "a:2"}
        assert await store.run(access.unlink, "a", "4")
        assert await linked(store) == {"a:3": "a:2"}
