"""Lists people with their user ids and roles, and links several user ids of one person."""

from collections.abc import Mapping, Sequence

from hermes.control.access import Access, AccessPolicy
from hermes.state import access
from hermes.types.errors import HermesError
from hermes.types.identity import OWNER, PersonId, Source, person_of
from hermes.types.store import Work
from hermes.types.value import Value


class UnknownId(HermesError):
    code = "unknown_id"
    status = 404


class KnownPerson(Value):
    """A person who is named in the settings or in the store."""

    person: PersonId
    role: str
    """The role in lower case: `user`, `admin` or `owner`."""
    ids: tuple[str, ...]
    """The user ids of the person, each as `platform:id`."""
    names: tuple[str, ...]
    """The names under which the person has asked to be paired."""


def parse_id(text: str) -> tuple[str, str]:
    """Returns the platform and the user id of an id such as `telegram:7`."""
    platform, colon, user = text.partition(":")
    if not (platform and colon and user):
        raise UnknownId(f"{text!r} is not an id of a user: write it like 'telegram:7'")
    return platform, user


def known_people(policy: AccessPolicy) -> Work[list[KnownPerson]]:
    """Returns the people that the settings name, the paired users and the linked ids."""
    known = yield from access.load_people()
    rules = Access(policy)
    rules.learn(known)
    names: dict[tuple[str, str], str] = {}
    ids = dict.fromkeys(map(parse_id, sorted(policy.owners) + sorted(policy.admins)))
    for platform, own in policy.platforms.items():
        lists = (own.allowed, *own.accounts.values())
        ids |= {(platform, user): None for one in lists for user in sorted(one.users)}
    for paired in (yield from access.paired_users()):
        id = (paired.account.partition(".")[0], paired.user_id)
        ids[id] = None
        if paired.user_name:
            names[id] = paired.user_name
    # The id of a person is one of the person's user ids. `linked` maps the other user ids to this
    # id, so this id is listed separately.
    named = (parse_id(person) for person in known.linked.values() if person != OWNER)
    return _listed(rules, [*ids, *named, *known.linked], names)


def _listed(
    rules: Access, ids: Sequence[tuple[str, str]], names: Mapping[tuple[str, str], str]
) -> list[KnownPerson]:
    """Groups the ids by person, and returns one entry for each person."""
    found: dict[PersonId, list[tuple[str, str]]] = {}
    for id in dict.fromkeys(ids):
        found.setdefault(rules.person(_source(*id), None), []).append(id)
    return [
        KnownPerson(
            person=person,
            role=rules.role(_source(*own_ids[0]), None).name.lower(),
            ids=tuple(person_of(*id) for id in own_ids),
            names=tuple(dict.fromkeys(names[id] for id in own_ids if id in names)),
        )
        for person, own_ids in found.items()
    ]


def link(ids: Sequence[str], now: float) -> Work[PersonId]:
    """Makes all ids the ids of one person, and returns this person: the owner if one of the ids is
    `owner`, and otherwise the person of the first id."""
    users = [parse_id(id) for id in ids if id != OWNER]
    known = yield from access.load_people()
    person = OWNER if OWNER in ids else known.linked.get(users[0], person_of(*users[0]))
    for user in users:
        yield from access.link(*user, person, now)
    return person


def unlink(id: str) -> Work[None]:
    """Makes the id a separate person again. Raises UnknownId if the id is not linked."""
    if not (yield from access.unlink(*parse_id(id))):
        raise UnknownId(f"{id!r} is not linked to another id: `hermes people list` shows the links")


def _source(platform: str, user_id: str) -> Source:
    return Source(
        platform=platform, account=platform, chat_kind="private", chat_id="", user_id=user_id
    )
