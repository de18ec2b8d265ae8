"""The rules for admission are applied in a fixed order, and a refused message is not stored."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hermes.control.access import Access, AccessPolicy, AllowedUsers, BotRule, PlatformAccess
from hermes.settings.sections import AccessSettings
from hermes.state.access import KnownPeople
from hermes.testing.platforms import Update, to_event
from hermes.testing.running import QUIET, rows, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.identity import OWNER, ChatKind, PersonId, Principal, Source
from hermes.types.messages import Accepted, Invited, Refused
from hermes.types.people import Role

OTHERS = frozenset({"8", "admin"})


def on(place: str, **rules: Any) -> AccessPolicy:
    """Returns a policy with these rules for a platform (`telegram`) or for one of its accounts
    (`telegram.b`)."""
    platform, dot, _ = place.partition(".")
    allowed = AllowedUsers(**rules)
    own = PlatformAccess(accounts={place: allowed}) if dot else PlatformAccess(allowed=allowed)
    return AccessPolicy(platforms={platform: own})


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
        (on("telegram", everyone=True), True),
        (on("telegram", users=frozenset({"7"})), True),
        (on("telegram", users=OTHERS), False),
        (on("telegram", group_users=frozenset({"7"}), group_chats=frozenset({"1"})), False),
        (on("discord", everyone=True), False),
        (on("telegram.b", users=frozenset({"7"})), False),
        (AccessPolicy(owners=frozenset({PersonId("telegram:7")})), True),
        (AccessPolicy(admins=frozenset({PersonId("discord:7")})), False),
        (AccessPolicy(anywhere=AllowedUsers(users=frozenset({"7"}))), True),
        (AccessPolicy(anywhere=AllowedUsers(users=frozenset({"8"}))), False),
        (AccessPolicy(anywhere=AllowedUsers(everyone=True)), True),
    ],
)
def test_nobody_is_admitted_by_default(policy: AccessPolicy, admitted: bool) -> None:
    assert Access(policy).admits(source(), None) is admitted


def test_an_account_with_a_list_of_its_own_does_not_use_the_list_of_the_platform() -> None:
    own = {"telegram.b": AllowedUsers(users=frozenset({"8"}))}
    rules = PlatformAccess(allowed=AllowedUsers(users=frozenset({"7"})), accounts=own)
    access = Access(AccessPolicy(platforms={"telegram": rules}))
    second = replace(source(), account="telegram.b")
    assert access.admits(source("7"), None)
    assert not access.admits(second, None)
    assert access.admits(replace(second, user_id="8"), None)
    assert not access.admits(source("8"), None)


def test_lists_for_groups_admit_nobody_in_a_private_chat() -> None:
    access = Access(on("telegram", group_users=frozenset({"7"}), group_chats=frozenset({"-5"})))
    group = replace(source(), chat_kind="group", chat_id="-4")
    assert access.admits(group, None)
    assert not access.admits(replace(group, user_id="8"), None)
    assert access.admits(replace(group, user_id="8", chat_id="-5"), None)
    assert not access.admits(source(), None)


def test_pairing_admits_one_user_of_one_account() -> None:
    access = Access(AccessPolicy())
    access.learn(KnownPeople(paired={("telegram", "7"): Role.USER}))
    assert access.admits(source(), None)
    assert not access.admits(source("8"), None)
    assert not access.admits(source(platform="discord"), None)
    assert not access.admits(replace(source(), account="telegram.b"), None)
    assert access.person(source(), None) == "telegram:7"


def test_linked_ids_are_one_person_with_the_highest_role_until_they_are_unlinked() -> None:
    access = Access(AccessPolicy(admins=frozenset({PersonId("telegram:7")})))
    paired = {("telegram.b", "8"): Role.OWNER, ("discord", "9"): Role.USER}
    linked = {("telegram", "8"): PersonId("ann"), ("discord", "9"): PersonId("ann")}
    access.learn(KnownPeople(paired=paired, linked=linked))
    discord = source("9", platform="discord")
    assert access.person(discord, None) == access.person(source("8"), None) == "ann"
    assert access.role(discord, None) is access.role(source("8"), None) is Role.OWNER
    assert access.role(source("7"), None) is Role.ADMIN
    access.learn(KnownPeople(paired=paired))
    assert access.person(discord, None) == "discord:9"
    assert access.role(discord, None) is Role.USER
    assert access.role(source("8"), None) is Role.OWNER


def test_an_id_that_is_linked_to_the_owner_has_the_role_owner_but_is_not_admitted() -> None:
    access = Access(AccessPolicy())
    access.learn(KnownPeople(linked={("telegram", "7"): OWNER}))
    assert access.role(source(), None) is Role.OWNER
    assert not access.admits(source(), None)


@pytest.mark.parametrize(
    ("rule", "kind", "read"),
    [
        ("none", "group", 0),
        ("mentions", "group", 2),
        ("mentions", "private", 0),
        ("all", "group", 2),
        ("all", "private", 2),
    ],
)
def test_bots_are_ignored_by_default_and_answered_until_the_limit(
    rule: BotRule, kind: ChatKind, read: int
) -> None:
    allowed = AllowedUsers(users=frozenset({"7"}))
    rules = PlatformAccess(allowed=allowed, bots=rule, bot_hops=2)
    access = Access(AccessPolicy(platforms={"telegram": rules}))
    bot = replace(source(), chat_kind=kind, is_bot=True)
    for _ in range(2):
        answered = 0
        while access.admits(bot, None) and answered < 9:
            access.hops.note(bot)
            answered += 1
        assert answered == read
        assert not access.admits(replace(bot, user_id="8"), None)
        access.hops.note(source())


@pytest.mark.parametrize(
    ("policy", "offered"),
    [
        (AccessPolicy(), True),
        (AccessPolicy(strangers="ignore"), False),
        (on("telegram", users=OTHERS), False),
        (AccessPolicy(anywhere=AllowedUsers(users=OTHERS)), False),
        (AccessPolicy(anywhere=AllowedUsers(users=OTHERS), strangers="pair"), True),
        (
            AccessPolicy(
                platforms={"telegram": PlatformAccess(strangers="pair")}, strangers="ignore"
            ),
            True,
        ),
    ],
)
def test_strangers_are_offered_pairing_unless_there_is_a_list(
    policy: AccessPolicy, offered: bool
) -> None:
    access = Access(policy)
    assert access.offers_pairing(source()) is offered
    assert not access.offers_pairing(replace(source(), chat_kind="group"))
    assert not access.offers_pairing(replace(source(), is_bot=True))


def test_a_sender_is_admitted_by_a_principal_but_not_by_the_name_of_a_platform() -> None:
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


def test_only_a_principal_of_the_owner_has_the_role_owner() -> None:
    access = Access(AccessPolicy(anywhere=AllowedUsers(everyone=True)))
    assert access.role(source(), Principal(name="default", person=OWNER)) is Role.OWNER
    assert access.role(source(), Principal(name="k", person=PersonId("ann"))) is Role.USER
    assert access.role(source(), None) is Role.USER


async def test_a_turn_is_offered_the_tools_of_its_sender(tmp_path: Path) -> None:
    rules = AccessSettings(allow_all=True, admins=("plain:1",), admin_tools=("append",))
    model = ScriptedModel([says("a"), says("b")])
    async with running(tmp_path, [], model, replace(QUIET, access=rules)) as gateway:
        for number, user in enumerate(("1", "7")):
            event = to_event(Update(id=number, chat=user, user=user, text="hi"), "plain")
            await gateway.accept(event)
            await until(lambda: not gateway.busy)
    admin, other = ({tool.name for tool in request.tools} for request in model.requests)
    assert admin - other == {"append"}
    assert other
