"""A gateway that restarts continues reading its platform at the saved position."""

from pathlib import Path

import pytest

from hermes.control.cursors import AccountCursor
from hermes.state import cursors, owners
from hermes.testing.platforms import Batch, ChatServer, PlainAdapter
from hermes.testing.rows import NOW, THEM, US
from hermes.testing.running import running, until
from hermes.testing.scripted import ScriptedModel
from hermes.testing.stores import open_test_store
from hermes.types.errors import ClaimLost


class Asked(ChatServer):
    """A platform that records the position from which the gateway requests updates."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[str] = []

    async def updates(self, token: str) -> Batch:
        self.tokens.append(token)
        return await super().updates(token)


async def test_a_restart_continues_at_the_saved_cursor(tmp_path: Path) -> None:
    server = Asked()
    server.says("/status")
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])):
        await until(lambda: len(server.tokens) == 3)
    assert server.tokens == ["0", "1", "2"]
    server.tokens.clear()
    server.says("/help")
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])):
        await until(lambda: len(server.texts()) == 2)
    assert server.tokens[0] == "1"


async def test_a_cursor_that_did_not_move_is_not_stored_again(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        epoch = await store.run(owners.claim_lease, "account:chat", US, set(), NOW)
        assert epoch is not None
        cursor = AccountCursor(store, "chat", (US, epoch), None)
        await cursor.save("a")
        assert cursor.value == await store.run(cursors.load, "chat") == "a"
        await store.run(owners.claim_lease, "account:chat", THEM, {US}, NOW)
        await cursor.save("a")
        with pytest.raises(ClaimLost):
            await cursor.save("b")
        assert cursor.value == "a"
