"""Runs the work of agents after a conversation has ended (`end_session`), at least once for each
conversation."""

import logging
import time
from collections.abc import Mapping

import anyio

from hermes.state import sessions, transcript
from hermes.state.sessions import EndedConversation
from hermes.state.transcript import History
from hermes.types.agents import HostedAgent
from hermes.types.errors import HermesError
from hermes.types.identity import AgentId, FolderId, SessionKey, TurnId, new_id
from hermes.types.store import Store, Work
from hermes.types.turns import Turn

log = logging.getLogger(__name__)

ENDED_POLL_SECONDS = 60.0
PATIENCE = 600.0
"""Seconds after which a process may repeat work that another process has begun and not finished."""


class SessionEndWorker:
    """Finds ended conversations. A gateway handles all of them. A terminal handles only the
    conversations that ended in it."""

    def __init__(
        self,
        store: Store,
        agents: Mapping[AgentId, HostedAgent],
        folder: FolderId | None = None,
        *,
        gateway: bool,
    ) -> None:
        """`folder` identifies the folder with the files of this node's agents. If a conversation
        has used another folder, a node with that folder handles the conversation."""
        self._store = store
        self._folder = folder
        self._agents = agents
        self._gateway = gateway
        self._news = anyio.Event()
        self._ended: set[str] = set()

    def notice(self, session: SessionKey) -> None:
        """Notes that a conversation of the session has just ended in this process."""
        self._ended.add(str(session))
        self._news.set()

    async def run(self) -> None:
        while True:
            try:
                await self._look()
            except HermesError as error:
                log.error("the work for ended conversations failed: %s", error)
            except Exception:
                log.exception("the work for ended conversations failed")
            with anyio.move_on_after(ENDED_POLL_SECONDS):
                await self._news.wait()
            self._news = anyio.Event()

    async def _look(self) -> None:
        sessions_ = [None] if self._gateway else [*self._ended]
        self._ended.clear()
        for session in sessions_:
            await self._end_all(session)

    async def _end_all(self, session: str | None) -> None:
        while ending := await self._store.run(
            sessions.take_ending, time.time(), PATIENCE, session, self._folder
        ):
            ended = await self._store.read(self._turn, ending)
            if ended is not None:
                await self._agents[ended.agent].end_session(ended, ending.ended_at)
            await self._store.run(sessions.forget_ending, ending)

    def _turn(self, ending: EndedConversation) -> Work[Turn | None]:
        """Returns a turn with the messages of the conversation; None if the conversation was
        deleted or is empty."""
        owner = yield from sessions.owner_of(ending.session)
        said = yield from transcript.history(ending.session, History(generation=ending.generation))
        if owner is None or not said.messages:
            return None
        key = SessionKey.parse(ending.session)
        return Turn(
            id=TurnId(new_id()),
            session=key,
            agent=key.agent,
            source=owner.source,
            profile=self._agents[key.agent].profile,
            history=said.messages,
            person=owner.person,
        )
