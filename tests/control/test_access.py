"""The rules for admission apply in their order, and a refused message is not stored."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.access import Access, AccessPolicy, AllowedUsers
from hermes.settings.sections import AccessSettings
from hermes.testing.platforms import Update, to_event
from hermes.testing.running import QUIET, rows, running
from hermes.testing.scripted import ScriptedModel
from hermes.types.identity import OWNER, PersonId, Principal, Source
from hermes.types.messages import Accepted, Invited, Refused

OTHERS = frozenset({"8", "admin"})


def source(user: str = "7", platform: str = "telegram") -> Source:
    return Source(
        platform=platform,
        account=platform,
        chat_kind="private",
        chat_id="1",
        user_id=user,
        user_name="admin",
    )


@pytest.mark.parametrize(
    ("policy", "admitted"),
    [
        (AccessPolicy(), False),
        (AccessPolicy(platforms={"telegram": AllowedUsers(everyone=True)}), True),
        (AccessPolicy(platforms={"telegram": AllowedUsers(users=frozenset({"7"}))}), True),
        (
            AccessPolicy(platforms={"telegram": AllowedUsers(users=frozenset({"8", "admin"}))}),
            False,
        ),
        (AccessPolicy(platforms={"discord": AllowedUsers(everyone=True)}), False),
        (AccessPolicy(anywhere=AllowedUsers(users=frozenset({"7"}))), True),
        (AccessPolicy(anywhere=AllowedUsers(users=frozenset({"8"}))), False),
        (AccessPolicy(anywhere=AllowedUsers(everyone=True)), True),
    ],
)
def test_nobody_is_admitted_by_default(policy: AccessPolicy, admitted: bool) -> None:
    assert Access(policy).admits(source(), None) is admitted


def test_pairing_admits_one_user_of_one_platform() -> None:
    access = Access(AccessPolicy())
    access.paired = {("telegram", "7"): PersonId("ann")}
    assert access.admits(source(), None)
    assert not access.admits(source("8"), None)
    assert not access.admits(source(platform="discord"), None)
    assert access.person(source(), None) == "ann"
    assert access.person(source("8"), None) == "telegram:8"


def test_a_principal_is_trusted_and_a_platform_name_alone_is_not() -> None:
    access = Access(AccessPolicy())
    assert access.admits(source(platform="api"), Principal(name="default", person=OWNER))
    assert access.person(source(), Principal(name="default", person=OWNER)) == OWNER
    for name in ("api", "cli", "embedded"):
        assert not access.admits(source(platform=name), None)


async def test_a_stranger_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    closed = replace(QUIET, access=AccessSettings(allowed_users=("8",)))
    async with running(tmp_path, [], ScriptedModel([]), closed) as gateway:
        event = to_event(Update(id=1, chat="1", user="7", text="hi"), "plain")
        assert isinstance(await gateway.accept(event), Refused)
        unaddressed = replace(to_event(Update(id=2, chat="1", user="8", text="hi"), "plain"))
        unaddressed = replace(unaddressed, addressed=False)
        assert isinstance(await gateway.accept(unaddressed), Refused)
        for table in ("inbox", "sessions", "turns", "messages", "deliveries"):
            assert await rows(gateway._store, f"select * from {table}") == []


async def test_an_invitation_is_accepted_only_from_people_who_are_admitted(tmp_path: Path) -> None:
    closed = replace(QUIET, access=AccessSettings(allowed_users=("8",)))
    async with running(tmp_path, [], ScriptedModel([]), closed) as gateway:
        for user, kind in (("8", Accepted), ("7", Refused)):
            event = to_event(Update(id=1, chat="1", user=user, text="hi"), "plain")
            assert isinstance(await gateway.accept(replace(event, body=Invited())), kind)
        for table in ("inbox", "sessions", "turns", "messages", "deliveries"):
            assert await rows(gateway._store, f"select * from {table}") == []
