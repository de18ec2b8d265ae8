"""Decides which senders may talk to the gateway. Senders are identified by stable ids."""

import logging
from collections.abc import Mapping
from typing import Literal

from hermes.control.bot_hops import BotHops
from hermes.state.access import KnownPeople
from hermes.types.identity import OWNER, PersonId, Principal, Source, person_of
from hermes.types.messages import MessageEvent, Receipt, Refused
from hermes.types.people import Role
from hermes.types.protocols import Accept
from hermes.types.value import Value

log = logging.getLogger(__name__)


BotRule = Literal["none", "mentions", "all"]
"""Which messages of other bots are read. `none`: no messages. `mentions`: only messages in groups
that mention our bot. `all`: all messages in private chats, and messages in groups that mention our
bot. Other messages in groups are never read."""
StrangerRule = Literal["", "pair", "ignore"]
"""Whether a stranger in a private chat gets a pairing code. `pair`: always. `ignore`: never. Empty:
only if there is no allowlist."""


class AllowedUsers(Value):
    """The users that are admitted on one platform or account, or on all platforms."""

    everyone: bool = False
    users: frozenset[str] = frozenset()
    group_users: frozenset[str] = frozenset()
    """Users that are admitted in groups only."""
    group_chats: frozenset[str] = frozenset()
    """Groups whose members are all admitted, in these groups only."""

    def admit(self, source: Source) -> bool:
        if self.everyone or source.user_id in self.users:
            return True
        grouped = source.user_id in self.group_users or source.chat_id in self.group_chats
        return source.chat_kind != "private" and grouped


class PlatformAccess(Value):
    """The access rules of one platform."""

    allowed: AllowedUsers = AllowedUsers()
    accounts: Mapping[str, AllowedUsers] = {}
    """Maps an account to its users. For the accounts in this mapping, `allowed` does not apply."""
    strangers: StrangerRule = ""
    bots: BotRule = "none"
    bot_hops: int = 3
    """After this number of messages of other bots in a chat, no bot is answered there until a
    person writes."""

    def allowed_on(self, account: str) -> AllowedUsers:
        return self.accounts.get(account, self.allowed)


class AccessPolicy(Value):
    platforms: Mapping[str, PlatformAccess] = {}
    anywhere: AllowedUsers = AllowedUsers()
    strangers: StrangerRule = ""
    """The rule for strangers on platforms that have no rule of their own."""
    owners: frozenset[PersonId] = frozenset()
    admins: frozenset[PersonId] = frozenset()

    def of(self, platform: str) -> PlatformAccess:
        return self.platforms.get(platform, PlatformAccess())


class Access:
    """Admits a sender if the platform's rules or the global rules allow everybody, if one of their
    allowlists contains the sender, or if the sender is paired. Everybody else is denied. Configured
    owners and admins count as members of the platform's allowlist."""

    def __init__(self, policy: AccessPolicy) -> None:
        self.policy = policy
        self.hops = BotHops()
        self._named = policy.owners | policy.admins
        self.learn(KnownPeople())

    def learn(self, people: KnownPeople) -> None:
        """Replaces the paired users, and the user ids of each person, by those in `people`, which
        was read from the store."""
        self._people = people
        linked = {person_of(*id): person for id, person in people.linked.items()}
        roles: dict[PersonId, Role] = {OWNER: Role.OWNER}
        for id, role in (
            *((id, Role.OWNER) for id in self.policy.owners),
            *((id, Role.ADMIN) for id in self.policy.admins),
            *(
                (person_of(account.partition(".")[0], user), role)
                for (account, user), role in people.paired.items()
            ),
        ):
            person = linked.get(id, id)
            roles[person] = max(role, roles.get(person, Role.USER))
        self._roles = roles

    def admits(self, source: Source, principal: Principal | None) -> bool:
        """Returns whether the sender may talk to the agent. A sender with a principal (for example,
        the holder of an API key) is always admitted, because an entry point has authenticated the
        principal."""
        if principal is not None:
            return True
        policy = self.policy
        if source.is_bot and not self._reads_bot(source):
            return False
        return (
            policy.of(source.platform).allowed_on(source.account).admit(source)
            or person_of(source.platform, source.user_id) in self._named
            or (source.account, source.user_id) in self._people.paired
            or policy.anywhere.admit(source)
        )

    def _reads_bot(self, source: Source) -> bool:
        platform = self.policy.of(source.platform)
        allowed = ("all",) if source.chat_kind == "private" else ("mentions", "all")
        return platform.bots in allowed and self.hops.count(source) < platform.bot_hops

    def offers_pairing(self, source: Source) -> bool:
        """Returns whether a stranger gets a pairing code. In groups, strangers get no reply."""
        if source.chat_kind != "private" or source.is_bot:
            return False
        platform, policy = self.policy.of(source.platform), self.policy
        if rule := platform.strangers or policy.strangers:
            return rule == "pair"
        allowed = platform.allowed_on(source.account)
        return not (allowed.users or allowed.group_users or policy.anywhere.users)

    def person(self, source: Source, principal: Principal | None) -> PersonId:
        """Returns the person behind the sender. Several user ids can belong to one person."""
        if principal is not None:
            return principal.person
        linked = self._people.linked.get((source.platform, source.user_id))
        return linked or person_of(source.platform, source.user_id)

    def role(self, source: Source, principal: Principal | None) -> Role:
        """Returns the role of the sender. If the person has several user ids, the highest role of
        these ids applies. The owner's API key and the terminal have the role of the owner."""
        return self._roles.get(self.person(source, principal), Role.USER)


def accept_from_chat(accept: Accept, account: str | None = None) -> Accept:
    """Wraps `accept` with a check that refuses invalid events of a chat adapter.

    If `account` is given, the event must belong to this account. The event must not have a
    principal (the authenticated identity of an API client or a terminal), because a sender with a
    principal is always admitted. The event must have a target for the answer.
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
