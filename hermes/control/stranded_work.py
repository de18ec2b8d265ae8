"""Ends work that can't continue, because no running node (machine) has the files that it needs."""

import logging
import time

import anyio

from hermes.control.recovery import StartTurn
from hermes.control.turn_transactions import Claim, Closing, TurnTransactions
from hermes.control.turns import finish_of, owed_content
from hermes.state import folders, inbox, session_lock, turns
from hermes.state.codec import record
from hermes.state.turns import EVENTS_PER_CLAIM, TurnRow
from hermes.types.errors import ClaimLost
from hermes.types.events import NO_USAGE
from hermes.types.identity import FolderId, OwnerId, SessionKey
from hermes.types.store import Store, Work
from hermes.types.turns import Failed
from hermes.types.value import Value

log = logging.getLogger(__name__)

FOLDER_SECONDS = 60.0
"""Seconds for which work waits for a node that has its files."""


class FailedMessage(Value):
    """A waiting message that was closed as failed."""

    message: str
    following: Claim | None = None
    """The next turn of the session, if this process can run it."""


class StrandedWork:
    """Fails the turns and messages that have waited too long for a node with their files.

    Only the process that does the maintenance calls `look`, once a second.
    """

    def __init__(self, store: Store, transactions: TurnTransactions, start: StartTurn) -> None:
        """`start` runs a turn in this process. When a waiting message has failed, `look` opens a
        turn for the next message of the session and passes the turn to `start`. It does so only if
        this process can run the turn."""
        self._store = store
        self._transactions = transactions
        self._start = start
        self._missing_since: dict[FolderId, float] = {}
        """The folders that no living gateway has, with the time at which this was first noticed."""

    async def look(self) -> bool:
        """Fails the work that has waited too long. Returns whether there was any such work."""
        needed = await self._store.read(folders.needed_by_work)
        if not needed - {self._transactions.placement.folder}:
            self._missing_since.clear()
            return False
        dead = set(await self._store.dead())
        living = await self._store.read(folders.living_owners, dead)
        missing = needed - {one.folder for one in living if one.kind == "gateway"}
        now = anyio.current_time()
        self._missing_since = {folder: self._missing_since.get(folder, now) for folder in missing}
        found = False
        for folder, since in self._missing_since.items():
            if now - since >= FOLDER_SECONDS:
                found |= await self._fail(folder, {one.id for one in living})
        return found

    async def _fail(self, folder: FolderId, living: set[OwnerId]) -> bool:
        failed = _failure(await self._store.read(folders.place_of, folder))
        found = False
        for row in await self._store.read(_turns_needing, folder):
            if row.owner not in living and self._transactions.hosts(row.session):
                found |= await self._fail_turn(row, failed)
        for session in await self._store.read(inbox.idle_sessions_needing, folder):
            if self._transactions.hosts(session):
                found |= await self._fail_message(session, folder, failed)
        return found

    async def _fail_turn(self, row: TurnRow, failed: Failed) -> bool:
        try:
            await self._store.run(self._transactions.give_up, row, time.time(), failed)
        except ClaimLost as lost:
            log.warning("%s", lost)
            return False
        log.error("turn %s has failed: %s", row.id, failed.reason)
        return True

    async def _fail_message(self, session: str, folder: FolderId, failed: Failed) -> bool:
        ended = await self._store.run(self._fail_oldest, session, folder, failed, time.time())
        if ended is None:
            return False
        log.error("message %s has failed: %s", ended.message, failed.reason)
        if ended.following is not None:
            self._start(ended.following)
        return True

    def _fail_oldest(
        self, session: str, folder: FolderId, failed: Failed, now: float
    ) -> Work[FailedMessage | None]:
        """If the oldest waiting message needs the folder, opens its turn and closes the turn as
        failed."""
        yield from session_lock.lock(session)
        # Another process may have opened a turn in the session meanwhile. Then nothing fails here.
        if (yield from turns.open_in(session)):
            return None
        waiting = yield from inbox.first_pending(session, self._transactions.owner)
        if waiting is None or waiting.folder != folder:
            return None
        key = SessionKey.parse(session)
        if waiting.event is None:
            yield from self._transactions.give_up_waiting(waiting, key, now)
            return FailedMessage(message=waiting.id)
        claim = yield from self._transactions.open_waiting(waiting, waiting.event, key, now)
        end, first = finish_of(failed), claim.row.epoch * EVENTS_PER_CLAIM + 1
        closing = Closing(
            outcome=failed,
            step=0,
            first_seq=first,
            recorded=record(first, [end]),
            content=owed_content((), [end], failed) if claim.turn.reply_to else None,
            usage=NO_USAGE,
        )
        following = yield from self._transactions.close(claim, closing, now)
        return FailedMessage(message=waiting.id, following=following)


def _turns_needing(folder: FolderId) -> Work[list[TurnRow]]:
    """Returns the turns that are ready to run and need the folder."""
    running = yield from folders.running_with(folder)
    suspended = yield from folders.suspended_with(folder)
    return [*running, *suspended]


def _failure(place: folders.FolderPlace | None) -> Failed:
    where = f"on node {place.node} ({place.host})" if place else "on a node that is not known"
    return Failed(
        reason=f"The files of this conversation are {where}, and no node that has them has run for"
        f" {FOLDER_SECONDS:g} s. Send the message again when the node runs, or begin a new"
        " conversation with /new.",
        code="folder_unavailable",
        status=503,
        temporary=True,
    )
