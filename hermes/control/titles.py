"""Writes titles of conversations with the auxiliary model, in the background."""

import logging
from collections.abc import Mapping

import anyio.abc

from hermes.control.turn_transactions import Claim
from hermes.state import sessions
from hermes.types.agents import HostedAgent, WriteTitle
from hermes.types.errors import HermesError
from hermes.types.identity import AgentId
from hermes.types.messages import UserMessage
from hermes.types.store import Store
from hermes.types.turns import Completed, Outcome, Turn

log = logging.getLogger(__name__)


class TitleWriter:
    """Writes a title once for each conversation, after its first answer, unless a person has given
    it a title. If no title can be written, the conversation keeps its first words as the title."""

    def __init__(
        self, store: Store, group: anyio.abc.TaskGroup, agents: Mapping[AgentId, HostedAgent]
    ) -> None:
        self._store = store
        self._group = group
        self._agents = agents

    def consider(self, claim: Claim, outcome: Outcome) -> None:
        """Writes a title if the turn gave the first answer of its conversation. Must be called for
        each closed turn."""
        begun = claim.before is not None and not claim.before.messages
        write = self._agents[claim.turn.agent].write_title
        if begun and write is not None and isinstance(outcome, Completed):
            self._group.start_soon(self._name, write, claim.turn, outcome.message.text)

    async def _name(self, write: WriteTitle, turn: Turn, answer: str) -> None:
        try:
            if title := await write(turn, answer):
                first = next(one for one in turn.history if isinstance(one, UserMessage))
                words = first.text or first.described
                await self._store.run(sessions.replace_first_words, str(turn.session), words, title)
        except HermesError as error:
            log.info("%s keeps its first words as its name: %s", turn.session, error)
        except Exception:
            log.exception("%s keeps its first words as its name", turn.session)
