"""Earlier conversations can be deleted and restored, except while a turn runs."""

from functools import partial
from pathlib import Path

import pytest

from hermes.control import sessions
from hermes.control.caches import CACHED_MESSAGES
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import rows, running, until
from hermes.testing.scripted import ScriptedModel, hangs, says

KEY = "agent:main:plain:private:1"


async def test_a_session_with_a_running_turn_is_neither_deleted_nor_restored(
    tmp_path: Path,
) -> None:
    server, model = ChatServer(), ScriptedModel([hangs()])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("think")
        await until(lambda: model.requests)
        for change in (partial(sessions.delete, KEY), partial(sessions.restore, KEY)):
            with pytest.raises(sessions.SessionBusy, match="/stop it first"):
                await gateway._store.run(change)
        assert await rows(gateway._store, "select count(*) from sessions") == [(1,)]


async def test_a_deleted_conversation_starts_again_without_history(tmp_path: Path) -> None:
    server, model = ChatServer(), ScriptedModel([says("one"), says("two")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("hi")
        await until(lambda: "one" in server.texts() and not gateway.busy)
        assert (await gateway._store.run(sessions.delete, KEY)).messages == 2
        assert await gateway._store.run(sessions.latest, "plain") is None
        server.says("hi again")
        await until(lambda: "two" in server.texts())
    assert [message.text for message in model.requests[1].messages] == ["hi again"]


async def test_a_deleted_conversation_is_removed_from_the_cache_of_the_gateway(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    model = ScriptedModel([says(f"answer {number}") for number in range(CACHED_MESSAGES + 2)])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:

        async def ask(number: int) -> None:
            server.says(f"question {number}")
            await until(lambda: f"answer {number}" in server.texts() and not gateway.busy)

        for number in range(CACHED_MESSAGES):
            await ask(number)
        async with running(tmp_path, [], ScriptedModel([])) as other:
            await other._store.run(sessions.delete, KEY)
        await ask(CACHED_MESSAGES)
        await ask(CACHED_MESSAGES + 1)
    assert [message.text for message in model.requests[-1].messages] == [
        f"question {CACHED_MESSAGES}",
        f"answer {CACHED_MESSAGES}",
        f"question {CACHED_MESSAGES + 1}",
    ]
