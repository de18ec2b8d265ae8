"""People who were admitted by pairing, and the user ids that are linked because they belong to the
same person."""

from collections.abc import Mapping

from hermes.state.storable import storable
from hermes.types.identity import PersonId, person_of
from hermes.types.people import Role
from hermes.types.store import Work
from hermes.types.value import Value


class KnownPeople(Value):
    """The people that the store knows."""

    paired: Mapping[tuple[str, str], Role] = {}
    """The roles of paired users. A key is an account and a user id."""
    linked: Mapping[tuple[str, str], PersonId] = {}
    """Maps each linked user id to its person. A key is a platform and a user id."""


class PairedUser(Value):
    """A user who was admitted to an account by pairing."""

    account: str
    user_id: str
    user_name: str | None
    role: str
    """The role in lower case: `user`, `admin` or `owner`."""
    granted_by: str
    """The person who has admitted the user; `owner` if the user was admitted on the command
    line."""
    granted_at: float

    @property
    def described(self) -> str:
        """The user's id and name, and the person who has admitted the user."""
        named = f", named “{self.user_name}”" if self.user_name else ""
        return f"user {self.user_id} of {self.account}{named}, paired by {self.granted_by}"


class LinkedId(Value):
    """A user id that was linked to a person. Messages from this user id count as messages of that
    person."""

    platform: str
    user_id: str
    person: PersonId


def load_people() -> Work[KnownPeople]:
    paired = yield "select account, user_id, role from pairings", ()
    linked = yield from linked_ids()
    return KnownPeople(
        paired={(account, user): Role[role.upper()] for account, user, role in paired},
        linked={(one.platform, one.user_id): one.person for one in linked},
    )


def paired_users() -> Work[list[PairedUser]]:
    """Returns all paired users, in the order in which they were paired."""
    rows = yield (
        "select account, user_id, user_name, role, granted_by, granted_at from pairings"
        " order by granted_at, account, user_id",
        (),
    )
    fields = PairedUser.__struct_fields__
    return [PairedUser(**dict(zip(fields, row, strict=True))) for row in rows]


def has_owner() -> Work[bool]:
    """Returns whether a paired user is an owner."""
    rows = yield "select 1 from pairings where role = 'owner' limit 1", ()
    return bool(rows)


def grant(
    account: str, user_id: str, user_name: str | None, role: Role, granted_by: str, now: float
) -> Work[None]:
    """Admits the user to the account. A user who is paired already keeps their role."""
    yield (
        "insert into pairings (account, user_id, user_name, role, granted_by, granted_at)"
        " values (?, ?, ?, ?, ?, ?) on conflict (account, user_id) do nothing",
        (
            account,
            user_id,
            None if user_name is None else storable(user_name),
            role.name.lower(),
            granted_by,
            now,
        ),
    )


def revoke(account: str, user_id: str) -> Work[bool]:
    """Removes the pairing of the user. Returns whether the user was paired."""
    rows = yield (
        "delete from pairings where account = ? and user_id = ? returning user_id",
        (account, user_id),
    )
    return bool(rows)


def linked_ids() -> Work[list[LinkedId]]:
    rows = yield (
        "select platform, user_id, person from linked_ids"
        " order by person, linked_at, platform, user_id",
        (),
    )
    return [LinkedId(platform=one, user_id=two, person=PersonId(who)) for one, two, who in rows]


def link(platform: str, user_id: str, person: PersonId, now: float) -> Work[None]:
    """Links the user id, and all ids that are linked to this id, to the person."""
    own = person_of(platform, user_id)
    yield "update linked_ids set person = ? where person = ?", (person, own)
    if own != person:
        yield (
            "insert into linked_ids (platform, user_id, person, linked_at) values (?, ?, ?, ?)"
            " on conflict (platform, user_id) do update set person = excluded.person",
            (platform, user_id, person, now),
        )
    yield from _forget_own_links()


def unlink(platform: str, user_id: str) -> Work[bool]:
    """Separates the user id from all ids that it is linked with. Returns False if the user id was
    not linked. The other ids stay linked with each other. One of several linked ids is the id of
    the person. If this was `user_id`, the oldest of the other ids becomes the id of the person."""
    removed = yield (
        "delete from linked_ids where platform = ? and user_id = ? returning user_id",
        (platform, user_id),
    )
    own = person_of(platform, user_id)
    others = yield (
        "select platform, user_id from linked_ids where person = ?"
        " order by linked_at, platform, user_id",
        (own,),
    )
    if others:
        heir = person_of(*others[0])
        yield "update linked_ids set person = ? where person = ?", (heir, own)
        yield from _forget_own_links()
    return bool(removed or others)


def _forget_own_links() -> Work[None]:
    """One of several linked ids is the id of the person. Deletes the rows that link such an id to
    itself, because these rows have no effect."""
    yield "delete from linked_ids where person = platform || ':' || user_id", ()
