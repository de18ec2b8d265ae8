"""People are listed with their ids and roles, and ids are linked in a running gateway."""

from functools import partial
from pathlib import Path

import pytest

from hermes.control import people
from hermes.control.access import AccessPolicy, AllowedUsers, PlatformAccess
from hermes.control.people import KnownPerson, UnknownId, parse_id
from hermes.state import access
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import rows, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.testing.stores import open_test_store
from hermes.types.identity import OWNER, PersonId
from hermes.types.people import Role


def test_an_id_may_contain_colons_and_needs_a_platform() -> None:
    assert parse_id("matrix:@ann:b.org") == ("matrix", "@ann:b.org")
    for wrong in ("", "7", ":7", "telegram:"):
        with pytest.raises(UnknownId):
            parse_id(wrong)


async def test_people_are_listed_with_all_their_ids_and_their_highest_role(tmp_path: Path) -> None:
    allowed = PlatformAccess(
        allowed=AllowedUsers(users=frozenset({"2"})),
        accounts={"t.b": AllowedUsers(users=frozenset({"3"}))},
    )
    policy = AccessPolicy(platforms={"t": allowed}, admins=frozenset({PersonId("t:3")}))
    async with open_test_store(tmp_path) as store:
        await store.run(access.grant, "m", "@ann", "Ann", Role.OWNER, OWNER, 1.0)
        assert await store.run(people.link, ("t:2", "m:@ann"), 2.0) == "t:2"
        assert await store.read(people.known_people, policy) == [
            KnownPerson(person=PersonId("t:3"), role="admin", ids=("t:3",), names=()),
            KnownPerson(
                person=PersonId("t:2"), role="owner", ids=("t:2", "m:@ann"), names=("Ann",)
            ),
        ]
        # Neither of these ids is named in the settings or paired.
        await store.run(people.link, ("t:42", "m:@bob"), 3.0)
        listed = await store.read(people.known_people, policy)
        assert [one.ids for one in listed if one.person == "t:42"] == [("t:42", "m:@bob")]
        assert await store.run(people.link, ("t:3", "owner"), 3.0) == OWNER
        assert await store.run(people.link, ("t:3", "t:9"), 4.0) == OWNER
        with pytest.raises(UnknownId):
            await store.run(people.unlink, "t:7")


async def test_two_linked_ids_have_two_sessions_and_unlinking_takes_effect_at_once(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    model = ScriptedModel([says("one"), says("two"), says("three")])
    adapter = PlainAdapter(server)
    async with running(tmp_path, [adapter], model) as gateway:
        await gateway._store.run(people.link, ("plain:7", "plain:8"), 1.0)
        gateway.notice_change()
        await until(lambda: ("plain", "8") in gateway._access._people.linked)
        for chat, number in (("7", 1), ("8", 2)):
            server.says("hi", chat=chat, user=chat)
            await until(partial(server.texts, chat))
            assert len(server.messages) == number
        async with open_test_store(tmp_path) as other:
            await other.run(people.unlink, "plain:8")
        await until(lambda: not gateway._access._people.linked)
        server.says("hi", chat="8", user="8")
        await until(lambda: server.texts("8")[-1] == "three")
        found = await rows(gateway._store, "select session, person from turns order by id")
    assert found == [
        ("agent:main:plain:private:7", "plain:7"),
        ("agent:main:plain:private:8", "plain:7"),
        ("agent:main:plain:private:8", "plain:8"),
    ]
    assert [len(request.messages) for request in model.requests] == [1, 1, 3]
