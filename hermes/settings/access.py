"""Makes the access rules from the settings."""

from hermes.control.access import AccessPolicy, AllowedUsers, PlatformAccess
from hermes.settings import Settings
from hermes.settings.sections import PlatformSettings
from hermes.types.identity import PersonId

EVERYONE = "*"
"""The entry in a list of users that admits everybody."""


def access_policy(settings: Settings) -> AccessPolicy:
    access = settings.access
    return AccessPolicy(
        platforms={name: _platform(name, one) for name, one in settings.platforms.items()},
        anywhere=_allowed(access.allowed_users, everyone=access.allow_all),
        strangers=access.unauthorized_dm_behavior,
        owners=frozenset(map(PersonId, access.owners)),
        admins=frozenset(map(PersonId, access.admins)),
    )


def _platform(name: str, one: PlatformSettings) -> PlatformAccess:
    return PlatformAccess(
        allowed=_allowed(
            one.allowed_users,
            everyone=one.allow_all,
            group_users=one.group_allowed_users,
            group_chats=one.group_allowed_chats,
        ),
        accounts={
            name if account == name else f"{name}.{account}": _allowed(tuple(users.split(",")))
            for account, users in one.account_users.items()
        },
        strangers=one.unauthorized_dm_behavior,
        bots=one.allow_bots,
        bot_hops=one.bot_hops,
    )


def _allowed(
    users: tuple[str, ...],
    *,
    everyone: bool = False,
    group_users: tuple[str, ...] = (),
    group_chats: tuple[str, ...] = (),
) -> AllowedUsers:
    names = frozenset(user.strip() for user in users) - {""}
    return AllowedUsers(
        everyone=everyone or EVERYONE in names,
        users=names - {EVERYONE},
        group_users=frozenset(group_users),
        group_chats=frozenset(group_chats),
    )
