"""Admits messages that are addressed to the agent and come from a person who may talk to it."""

import logging

from hermes.control.access import Access
from hermes.control.commands import names_another_bot
from hermes.control.message_parts import AddressedAlbums
from hermes.control.pairing import Pairing
from hermes.types.messages import Accepted, Invited, MessageEvent, Receipt, Refused

log = logging.getLogger(__name__)


class Admission:
    def __init__(self, access: Access, pairing: Pairing) -> None:
        self._access = access
        self._pairing = pairing
        self._albums = AddressedAlbums()

    def admits(self, event: MessageEvent) -> bool:
        """Returns whether the message is addressed to the agent and the sender may talk to the
        agent."""
        addressed = _is_addressed(event) or event in self._albums
        if not addressed or not self._access.admits(event.source, event.origin.principal):
            return False
        self._albums.note(event)
        return True

    async def refuse(self, event: MessageEvent) -> Receipt:
        """Refuses a message that is not admitted, and offers pairing to a stranger. There is one
        exception: an invitation to a private chat is accepted if the stranger can be paired
        there."""
        source, addressed = event.source, _is_addressed(event)
        # A message that is not addressed to the agent is logged at level DEBUG only.
        level = logging.INFO if addressed else logging.DEBUG
        log.log(level, "not admitted: user %s of %s", source.user_id, source.account)
        if addressed:
            await self._pairing.meet(event)
        if isinstance(event.body, Invited) and self._pairing.visits(source):
            return Accepted(id=event.dedupe_key)
        return Refused(reason="not admitted")


def _is_addressed(event: MessageEvent) -> bool:
    return event.addressed and not names_another_bot(event)
