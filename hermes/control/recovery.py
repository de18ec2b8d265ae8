"""Finds turns that no process runs although they can run: the turns of dead processes, and
suspended turns that can be resumed."""

import logging
import platform
import time
from collections.abc import Awaitable, Callable, Collection, Mapping

import msgspec

from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.control.turns import end_processes
from hermes.state import folders, inbox, owners, session_lock, turns
from hermes.state.folder_ids import FOLDER_ID
from hermes.state.turns import TurnRow
from hermes.types.agents import HostedAgent
from hermes.types.deployment import NodeFolder
from hermes.types.errors import ClaimLost, ConfigError, HermesError
from hermes.types.identity import AgentId, CallId, FolderId, OwnerId, SessionKey, TurnId
from hermes.types.store import OwnerKind, Store, Work

log = logging.getLogger(__name__)

UNREADABLE = (msgspec.DecodeError, IndexError)
"""Errors that occur if the rows of a turn are damaged or missing, or were written by a newer
version."""
StartTurn = Callable[[Claim], None]
"""Starts a claimed turn. It is called directly after the commit of each claim, so that a later
error can't prevent the start."""


class Recovery:
    """Recovers the turns that this process may own: its own turns and those of dead processes.
    Turns whose files are on other nodes are left to those nodes."""

    def __init__(
        self, store: Store, transactions: TurnTransactions, agents: Mapping[AgentId, HostedAgent]
    ) -> None:
        self._store = store
        self._transactions = transactions
        self._placement = transactions.placement
        self._agents = agents
        self._warned_of: set[AgentId] = set()

    async def lease(self, name: str) -> int | None:
        """Takes a lease. Returns the lease's new epoch (its number); None if another living process
        holds the lease."""
        dead = set(await self._store.dead())
        owner = self._store.owner
        return await self._store.run(owners.claim_lease, name, owner, dead, time.time())

    async def use_folder(self, folder: NodeFolder) -> None:
        """Records that this process uses the folder.

        Raises ConfigError if the folder is a copy of the folder of another gateway, because files
        that one gateway writes would be missing in the folder of the other gateway.
        """
        host, owner = platform.node(), self._store.owner
        if self._placement.checked and not folder.shared:
            before = await self._store.read(folders.place_of, folder.id)
            moved = before is not None and (before.host, before.path) != (host, folder.path)
            if before is not None and moved and await self._is_used(folder.id):
                raise ConfigError(
                    f"{folder.path} is a copy of {before.path} on {before.host}, which a running"
                    f" gateway uses: delete {FOLDER_ID} in one of the two folders, or set"
                    " store.shared_folder"
                )
        await self._store.run(folders.record, folder, owner, host, time.time())

    async def _is_used(self, folder: FolderId) -> bool:
        """Returns whether another living gateway uses the folder."""
        dead = set(await self._store.dead())
        living = await self._store.read(folders.living_owners, dead)
        return any(
            one.folder == folder and one.kind == "gateway" and one.id != self._store.owner
            for one in living
        )

    async def take_over(self, start: StartTurn, kind: OwnerKind | None = None) -> None:
        """Resumes the turns of dead processes, after ending the commands that these turns have left
        running."""
        dead = await self._store.dead(kind)
        if not dead:
            return
        left: list[TurnRow] = []
        for owner in dead:
            left += await self._store.run(turns.running_of, owner)
        for row in left:
            if not self._hosts(row.session) or not self._placement.has(row.folder):
                continue
            claim = await self._resumed(row, self._take_turn)
            if claim is not None:
                log.info("resuming turn %s of a process that died", row.id)
                start(claim)
        leaving, agents = await self._store.read(self._left_by, dead)
        self._warn_of(agents)
        if leaving:
            await self._store.run(self._adopt_the_rest, leaving)

    async def take_back(self, stopped: Collection[TurnId], start: StartTurn) -> None:
        """Resumes turns that this process had to stop, unless another process has taken them
        over."""
        for row in await self._store.run(turns.running_of, self._store.owner):
            if row.id in stopped:
                claim = await self._resumed(row, self._take_turn)
                if claim is not None:
                    log.info("resuming turn %s, which was stopped when the lock was lost", row.id)
                    start(claim)

    async def _take_turn(self, row: TurnRow) -> Claim:
        for call, handle in (await self._store.run(turns.started_calls, row.id)).items():
            if handle is not None:
                await self._end_command(call, handle)
        return await self._resume_turn(row)

    async def _end_command(self, call: CallId, handle: str) -> None:
        """Ends a command. All backends are tried, because the command may belong to the backend of
        any agent."""
        for agent in self._agents.values():
            try:
                if await agent.backend.end(handle):
                    log.warning("ended the command that call %s had left running", call)
                    return
            except HermesError as error:
                log.error("the command of call %s may still be running: %s", call, error)
            except Exception:
                # A backend may come from a plugin, and an error in the plugin must not stop the
                # recovery.
                log.exception("the command of call %s may still be running", call)

    async def resume(self, start: StartTurn, runs: Callable[[TurnId], bool]) -> None:
        """Starts the turns that can be run now.

        A suspended turn is started if all of its questions were decided. If a stop was requested
        for a suspended turn, the turn is started as well, so that it can be closed. For the same
        reason, a turn with such a request is started if it runs in this process according to the
        store, but no lane runs it. Messages that wait in idle sessions get new turns.
        """
        rows, idle = await self._store.run(self._to_resume)
        for row in rows:
            if self._hosts(row.session) and (row.state == "suspended" or not runs(row.id)):
                claim = await self._resumed(row, self._resume_turn)
                if claim is not None:
                    start(claim)
        for session in filter(self._hosts, idle):
            claim = await self._store.run(self._open_idle, session, time.time())
            if claim is not None:
                start(claim)

    async def stops(self) -> list[TurnId]:
        """Returns the turns of this process for which a stop was requested, by any process."""
        rows = await self._store.run(turns.running_of, self._store.owner)
        return [row.id for row in rows if row.stop_requested]

    async def _resume_turn(self, row: TurnRow) -> Claim:
        return await self._store.run(self._transactions.resume, row, time.time())

    async def _resumed(
        self, row: TurnRow, resume: Callable[[TurnRow], Awaitable[Claim]]
    ) -> Claim | None:
        """Returns the resumed turn. Returns None if another process owns the turn, or if the turn
        had to be given up."""
        try:
            return await resume(row)
        except ClaimLost:
            return None
        except UNREADABLE:
            # One unreadable turn must not prevent the other turns from being resumed.
            log.exception("turn %s can't be resumed: it is closed as failed", row.id)
        if row.transient:
            session = SessionKey.parse(row.session)
            await end_processes(self._agents[session.agent], session)
        try:
            await self._store.run(self._transactions.give_up, row, time.time())
        except ClaimLost as lost:
            log.warning("%s", lost)
        return None

    def _open_idle(self, session: str, now: float) -> Work[Claim | None]:
        yield from session_lock.lock(session)
        # Another process may have opened a turn meanwhile, so that the session is no longer idle.
        if (yield from turns.open_in(session)):
            return None
        return (yield from self._transactions.open_next(session, now))

    def _hosts(self, session: str) -> bool:
        """Returns whether the session's agent is hosted here. This process does not touch the work
        of other agents."""
        agent = SessionKey.parse(session).agent
        self._warn_of({agent})
        return agent in self._agents

    def _warn_of(self, agents: set[AgentId]) -> None:
        """Logs which agents have work in the store but are not hosted here. Each agent is logged
        only one time."""
        for agent in sorted(agents - self._agents.keys() - self._warned_of):
            log.warning("turns or messages of agent %r wait: it is not hosted here", agent)
            self._warned_of.add(agent)

    def _left_by(self, dead: list[OwnerId]) -> Work[tuple[list[OwnerId], set[AgentId]]]:
        """Returns the dead processes that can be handled here, and the agents whose work the dead
        processes have left.

        A dead process can be handled here if it has left no work, or work that this process can
        take over.
        """
        found: list[OwnerId] = []
        agents: set[AgentId] = set()
        for owner in dead:
            waiting = yield from inbox.waiting_agents(owner)
            open_ones = yield from turns.open_agents(owner)
            suspended = yield from folders.suspended_of(owner, self._placement.limit)
            agents |= waiting | open_ones
            if (
                not waiting | open_ones
                or not waiting.isdisjoint(self._agents)
                or any(self._transactions.hosts(row.session) for row in suspended)
            ):
                found.append(owner)
        return found, agents

    def _adopt_the_rest(self, dead: list[OwnerId]) -> Work[None]:
        """Takes over the waiting work of dead processes. Then removes the registrations of the
        processes that have no other work."""
        yield from inbox.adopt(dead, self._store.owner, self._agents)
        limit = self._placement.limit
        yield from turns.adopt_suspended(dead, self._store.owner, self._agents, limit)
        for owner in dead:
            # If rows still name the process as their owner, this call keeps the registration.
            yield from owners.leave(owner)

    def _to_resume(self) -> Work[tuple[list[TurnRow], list[str]]]:
        """Returns the turns that must be resumed or stopped, and the idle sessions with waiting
        messages."""
        owner, folder = self._store.owner, self._placement.limit
        suspended = yield from turns.suspended_to_resume(owner)
        running = yield from turns.running_of(owner)
        if folder is None or self._placement.terminal:
            idle = yield from inbox.idle_sessions(owner)
        else:
            # A suspended turn can belong to a gateway that does not have the folder that the turn
            # needs. If this process has the folder, it resumes the turn instead.
            known = {row.id for row in suspended}
            there = yield from folders.suspended_with(folder)
            suspended += [row for row in there if row.id not in known]
            idle = yield from inbox.idle_sessions_of(owner, folder)
        return [*suspended, *(row for row in running if row.stop_requested)], idle
