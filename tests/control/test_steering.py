"""Steering messages and edits take effect exactly once, no matter after which commit the gateway
is killed."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control.sending import REPEAT
from hermes.control.waiting_messages import STEERED
from hermes.settings.sections import DisplaySettings
from hermes.testing.commit_kills import CommitKill, killable
from hermes.testing.platforms import ChatServer
from hermes.testing.running import QUIET, refused, rows, until
from hermes.testing.scripted import calls
from hermes.testing.stores import stores_on_postgres
from hermes.types.messages import AssistantMessage, ToolMessage, UserMessage
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit
from hermes.types.store import Store

pytestmark = pytest.mark.slow

STEERING = replace(QUIET, display=DisplaySettings(busy_input_mode="steer"))
FEW = 4
"""On PostgreSQL, the gateway is killed after every fourth commit only. On SQLite, it is killed
after every commit."""


class Model:
    """A model that first calls a tool, which appends a token to a file. The model then answers with
    the last line that the person wrote. The first model call of a conversation waits for `go`."""

    def __init__(self, *, answers_red: bool) -> None:
        """If `answers_red` is false, the model never answers the message `red`."""
        self.requests: list[ModelRequest] = []
        self.go = anyio.Event()
        self._answers_red = answers_red

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        self.requests.append(request)
        assert refused(request) is None
        said = [one.text for one in request.messages if isinstance(one, UserMessage)]
        if not any(isinstance(one, ToolMessage) for one in request.messages):
            await self.go.wait()
            return await calls(("append", {"token": "x"}))(request, emit)
        if said[-1] == "red" and not self._answers_red:
            await anyio.sleep_forever()
        return AssistantMessage(text=f"done: {said[-1].splitlines()[-1]}")


class Scene:
    """A person who writes, and writes again or edits while the agent works."""

    def __init__(self, home: Path, *, edits: bool) -> None:
        self.home = home
        self.server = ChatServer()
        self.model = Model(answers_red=not edits)
        self.edits = edits
        self._first = self.server.says("red")
        self._acted = False

    def act(self) -> None:
        """Sends the second message or the edit, unless that was done before."""
        if self._acted:
            return
        self._acted = True
        if self.edits:
            self.server.edits(self._first, "blue")
        else:
            self.server.says("blue")

    async def run(self, kill: CommitKill) -> None:
        async with killable(self.home, self.server, self.model, kill, STEERING) as gateway:
            await until(lambda: self.model.requests, 20)
            if self.edits:
                self.model.go.set()
                await until(lambda: len(self.model.requests) > 1, 20)
            self.act()
            await until(lambda: STEERED in self.server.texts() or self.edits, 20)
            self.model.go.set()
            await until(lambda: "done: blue" in str(self.server.texts()), 20)
            await until(lambda: not gateway.busy, 20)
            await self.check(gateway._store)

    async def resume(self) -> None:
        """Runs another gateway, and checks what the person and the store see in the end."""
        self.act()
        self.model.go.set()
        kill = CommitKill()
        async with killable(self.home, self.server, self.model, kill, STEERING) as gateway:
            await until(lambda: "done: blue" in str(self.server.texts()), 20)
            await until(lambda: not gateway.busy, 20)
            await self.check(gateway._store)

    async def check(self, store: Store) -> None:
        answers = [text for text in self.server.texts() if "done: blue" in text]
        assert len(answers) == 1
        assert answers[0].removeprefix(REPEAT).strip() == "done: blue"
        said = await rows(store, "select text from messages where role = 'user' order by id")
        assert len(said) == 2
        assert said[0] == ("red",)
        assert said[1][0].endswith("blue")
        assert await rows(store, "select 1 from inbox where state <> 'done'") == []
        states = sorted(await rows(store, "select state from turns"))
        assert states[0] == ("completed",)
        if self.edits:
            assert states == [("completed",), ("stopped",)]
        # If the gateway was killed right before the tool wrote the file, the next gateway can't
        # know whether the tool has run, so it does not run the tool again.
        path = self.home / "workspace" / "appended"
        assert not path.exists() or path.read_text() == "x\n"


def opened(store: str) -> AbstractContextManager[None]:
    return stores_on_postgres() if store == "postgres" else nullcontext()


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("edits", [False, True], ids=["steer", "edit"])
async def test_after_a_kill_at_any_commit_the_message_takes_effect_once(
    tmp_path: Path, store: str, edits: bool
) -> None:
    with opened(store):
        undisturbed = CommitKill()
        await Scene(tmp_path / "whole", edits=edits).run(undisturbed)
        commits = undisturbed.commits
        assert ("enter_turn" in commits) is not edits
        step = FEW if store == "postgres" else 1
        for number in range(1, len(commits) + 1, step):
            scene = Scene(tmp_path / str(number), edits=edits)
            await scene.run(CommitKill(after=number))
            await scene.resume()
