"""Who may talk to us. Closed unless opened; decided by stable ids only."""

from collections.abc import Mapping

from hermes.types.identity import PersonId, Principal, Source
from hermes.types.value import Value


class AllowedUsers(Value):
    """Who is let in on a platform, or everywhere."""

    everyone: bool = False
    users: frozenset[str] = frozenset()


class AccessPolicy(Value):
    platforms: Mapping[str, AllowedUsers] = {}
    anywhere: AllowedUsers = AllowedUsers()


class Access:
    """Platform allow-all, platform allowlist, pairing, global allow-all, deny: in this order."""

    def __init__(self, policy: AccessPolicy) -> None:
        self._policy = policy
        self.paired: Mapping[tuple[str, str], PersonId] = {}
        """(platform, user id) of everybody who was let in by pairing."""

    def admits(self, source: Source, principal: Principal | None) -> bool:
        """Whether the sender may talk to us. An entry point vouches for its principal."""
        if principal is not None:
            return True
        platform = self._policy.platforms.get(source.platform, AllowedUsers())
        return (
            platform.everyone
            or source.user_id in platform.users
            or (source.platform, source.user_id) in self.paired
            or source.user_id in self._policy.anywhere.users
            or self._policy.anywhere.everyone
        )

    def person(self, source: Source, principal: Principal | None) -> PersonId:
        """The person behind the sender. One person may have paired several users."""
        if principal is not None:
            return principal.person
        known = self.paired.get((source.platform, source.user_id))
        return known or PersonId(f"{source.platform}:{source.user_id}")
