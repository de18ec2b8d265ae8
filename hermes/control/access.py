"""Decides who may talk to the gateway: only people who were let in, identified by stable ids."""

import logging
from collections.abc import Mapping

from hermes.types.identity import OWNER, PersonId, Principal, Source
from hermes.types.messages import MessageEvent, Receipt, Refused
from hermes.types.people import Role
from hermes.types.protocols import Accept
from hermes.types.value import Value

log = logging.getLogger(__name__)


class AllowedUsers(Value):
    """The users that are admitted on one platform, or on all platforms."""

    everyone: bool = False
    users: frozenset[str] = frozenset()


class AccessPolicy(Value):
    platforms: Mapping[str, AllowedUsers] = {}
    anywhere: AllowedUsers = AllowedUsers()


class Access:
    """Admits a sender if any of these rules applies: allow-all or allowlist of the platform,
    pairing, global allowlist or global allow-all. Everybody else is denied."""

    def __init__(self, policy: AccessPolicy) -> None:
        self._policy = policy
        self.paired: Mapping[tuple[str, str], PersonId] = {}
        """The people who were admitted by pairing. A key is a platform and a user id."""

    def admits(self, source: Source, principal: Principal | None) -> bool:
        """Returns whether the sender may talk to the agent. A sender with a principal always may,
        because an entry point has authenticated the principal."""
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
        """Returns the person behind the sender. Several paired user ids can belong to one
        person."""
        if principal is not None:
            return principal.person
        known = self.paired.get((source.platform, source.user_id))
        return known or PersonId(f"{source.platform}:{source.user_id}")

    def role(self, source: Source, principal: Principal | None) -> Role:
        """Returns the role of the sender. The owner's own key and terminal act as owner."""
        return Role.OWNER if self.person(source, principal) == OWNER else Role.USER


def accept_from_chat(accept: Accept, account: str | None = None) -> Accept:
    """Wraps `accept` with a check that refuses invalid events of a chat adapter.

    If `account` is given, the event must belong to this account. The event must not have a
    principal, because a sender with a principal is always admitted. The event must have a target
    for the answer.
    """

    async def check(event: MessageEvent) -> Receipt:
        fault = _fault(event, account)
        if fault is None:
            return await accept(event)
        # This is a bug in the adapter. Raising an error would end the connection for every chat,
        # and the platform would deliver the same event again and again, so the bug is only logged.
        log.error("a message of %s is refused: %s", event.source.account, fault)
        return Refused(reason="not a valid event of a chat")

    return check


def _fault(event: MessageEvent, account: str | None) -> str | None:
    if event.origin.principal is not None:
        return "only an entry point that authenticates may set origin.principal"
    if event.origin.reply_to is None:
        return "origin.reply_to is missing, so the answer could not be sent"
    if account is not None and event.source.account != account:
        return f"it was reported by the adapter of {account}"
    return None
