"""Notes are written after a conversation has ended, even if the process crashes."""

from pathlib import Path

import anyio
from msgspec.structs import replace

from hermes.control.routing import DEFAULT_AGENT
from hermes.control.session_end import SessionEndWorker
from hermes.settings.sections import MemorySettings
from hermes.state import sessions
from hermes.state.memory import Memory
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import QUIET, rows, running, until
from hermes.testing.scripted import ScriptedModel, calls, hangs, says
from hermes.testing.turns import PRIVATE, a_turn, hosted_agent
from hermes.types.errors import Disconnected
from hermes.types.identity import SessionKey
from hermes.types.messages import UserMessage
from hermes.types.turns import Turn

REMEMBERING = replace(QUIET, memory=MemorySettings(), tools=None)
NOTE = {"target": "user", "edits": [{"action": "add", "content": "Likes tea."}]}
WHOSE = replace(PRIVATE, platform="plain", account="plain", user_id="7")


def remembered(home: Path) -> str:
    turn = a_turn(source=WHOSE, home=home)
    return Memory().read(turn).user


async def talk(server: ChatServer) -> None:
    for number, text in enumerate(("hi", "I like tea")):
        server.says(text)
        await until(lambda n=number: server.texts()[n:])  # type: ignore[misc]


async def test_notes_are_written_when_a_conversation_ends(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([says("hello"), says("I see"), calls(("memory", NOTE)), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], model, REMEMBERING) as gateway:
        await talk(server)
        server.says("/new")
        await until(lambda: remembered(tmp_path))
        assert "Likes tea." in remembered(tmp_path)
        await until(lambda: len(model.requests) == 4)
        assert [tool.name for tool in model.requests[2].tools] == ["memory"]
        (shown,) = model.requests[2].messages
        assert "I like tea" in shown.text
        await until(lambda: not gateway.busy)


async def test_notes_are_not_lost_if_the_process_crashes_while_it_writes_them(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    first = ScriptedModel([says("hello"), says("I see"), hangs()])
    async with running(tmp_path, [PlainAdapter(server)], first, REMEMBERING):
        await talk(server)
        server.says("/new")
        await until(lambda: len(first.requests) == 3)
    second = ScriptedModel([calls(("memory", NOTE)), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], second, REMEMBERING) as gateway:
        # Another process may take over the work only 600 s after the dead process has claimed it.
        # So the test makes the claim older.
        await rows(gateway._store, "update endings set taken_at = taken_at - 601")
        server.says("/new")
        await until(lambda: remembered(tmp_path))
    assert "Likes tea." in remembered(tmp_path)


async def test_failed_work_is_retried_later_and_does_not_stop_other_work(tmp_path: Path) -> None:
    seen: list[Turn] = []

    async def end(turn: Turn, ended_at: float) -> None:
        seen.append(turn)
        raise Disconnected("the memory is away")

    server, model = ChatServer(), ScriptedModel([says("hello"), says("again")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("hi")
        await until(server.texts)
        await gateway._store.run(sessions.begin_anew, "agent:main:plain:private:1", 0.0)

        agents = {DEFAULT_AGENT: replace(hosted_agent(), end_session=end)}
        async with anyio.create_task_group() as group:
            group.start_soon(SessionEndWorker(gateway._store, agents, gateway=True).run)
            await until(lambda: seen)
            server.says("hi")
            await until(lambda: "again" in server.texts())
            group.cancel_scope.cancel()
        assert await rows(gateway._store, "select count(*) from endings") == [(1,)]
    (turn,) = seen
    assert turn.history[0] == UserMessage(text="hi")
    assert turn.person == "plain:7"


async def test_a_terminal_handles_only_its_own_ended_conversations(tmp_path: Path) -> None:
    server = ChatServer()
    first = ScriptedModel([says("hello"), says("I see"), hangs()])
    async with running(tmp_path, [PlainAdapter(server)], first, REMEMBERING):
        await talk(server)
        server.says("/new")
        await until(lambda: len(first.requests) == 3)
    curious = ScriptedModel([])
    terminal = replace(REMEMBERING, terminal=True)
    async with running(tmp_path, [], curious, terminal) as gateway:
        await rows(gateway._store, "update endings set taken_at = taken_at - 601")
        gateway._session_end_worker.notice(SessionKey.parse("agent:main:cli:private:mine"))
        await until(lambda: not gateway._session_end_worker._ended)
        assert await rows(gateway._store, "select count(*) from endings") == [(1,)]
    assert curious.requests == []
