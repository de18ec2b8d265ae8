"""Approvals survive a kill of the gateway at any commit between the question, the decision and the
command: nothing runs without an approval, nothing runs twice, and no decision is lost."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from hermes.core.tools.call import UNKNOWN_OUTCOME
from hermes.testing.approvals import DANGEROUS
from hermes.testing.commit_kills import CommitKill, killable
from hermes.testing.platforms import ChatServer
from hermes.testing.running import refused, rows, until
from hermes.testing.scripted import calls
from hermes.testing.stores import stores_on_postgres
from hermes.types.messages import AssistantMessage, ToolMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit
from hermes.types.store import Store

pytestmark = pytest.mark.slow

COMMAND = "echo x >> ran && rm -rf folder"
FEW = 4
"""On PostgreSQL, the gateway is killed after every fourth commit."""
STATES = {"yes": "approved", "no": "denied", "/approve session": "approved"}


class Model:
    """A model that first runs the dangerous command, and then answers."""

    def __init__(self) -> None:
        self.results: list[str] = []

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        assert refused(request) is None
        found = [one.text for one in request.messages if isinstance(one, ToolMessage)]
        if not found:
            return await calls(("terminal", {"command": COMMAND}))(request, emit)
        self.results = found
        return AssistantMessage(text="finished")


class Scene:
    """A person who decides about a command as soon as the question is shown."""

    def __init__(self, home: Path, answer: str) -> None:
        self.home = home
        self.answer = answer
        self.server = ChatServer()
        self.model = Model()
        self._decided = False
        (home / "workspace" / "folder").mkdir(parents=True)
        self.server.says("clean up")

    async def run(self, kill: CommitKill) -> None:
        """Runs a gateway until the turn has ended or the gateway is killed."""
        async with killable(self.home, self.server, self.model, kill, DANGEROUS) as gateway:
            await until(lambda: "needs your approval" in str(self.server.texts()), 20)
            assert self._decided or not self.ran
            await until(lambda: not gateway.busy, 20)
            if not self._decided:
                self._decided = True
                self.server.says(self.answer)
            await until(lambda: "finished" in str(self.server.texts()), 20)
            await until(lambda: not gateway.busy, 20)
            await self.check(gateway._store)

    @property
    def ran(self) -> int:
        """Number of times that the command has run."""
        path = self.home / "workspace" / "ran"
        return len(path.read_text().split()) if path.exists() else 0

    async def check(self, store: Store) -> None:
        assert await rows(store, "select state from questions") == [(STATES[self.answer],)]
        assert await rows(store, "select state from turns") == [("completed",)]
        assert await rows(store, "select 1 from inbox where state <> 'done'") == []
        rules = await rows(store, "select count(*) from approval_rules")
        assert rules == [(int("session" in self.answer),)]
        (result,) = self.model.results
        if self.answer == "no":
            assert self.ran == 0
        elif result == UNKNOWN_OUTCOME:
            assert self.ran <= 1
        else:
            assert self.ran == 1


def opened(store: str) -> AbstractContextManager[None]:
    return stores_on_postgres() if store == "postgres" else nullcontext()


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("answer", list(STATES))
async def test_after_a_kill_at_any_commit_the_decision_takes_effect_once(
    tmp_path: Path, store: str, answer: str
) -> None:
    with opened(store):
        undisturbed = CommitKill()
        await Scene(tmp_path / "whole", answer).run(undisturbed)
        commits = undisturbed.commits
        assert commits.count("Intake.take") == 2
        assert ("TurnCheckpoint.started.<locals>.work" in commits) is (answer != "no")
        step = FEW if store == "postgres" else 1
        for number in range(1, len(commits) + 1, step):
            scene = Scene(tmp_path / str(number), answer)
            await scene.run(CommitKill(after=number))
            await scene.run(CommitKill())
