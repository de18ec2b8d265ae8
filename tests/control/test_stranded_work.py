"""Work fails after a while if no living gateway has the folder that the work needs."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control import stranded_work
from hermes.control.placement import Placement
from hermes.control.routing import DEFAULT_AGENT
from hermes.control.stranded_work import StrandedWork
from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.state import folders, inbox, sessions, turns
from hermes.testing.rows import NOW, SOURCE, THEM, said, session, turn_row
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.testing.turns import hosted_agent
from hermes.types.deployment import NodeFolder
from hermes.types.identity import FolderId, OwnerId
from hermes.types.store import Store

HERE, THERE = FolderId("here"), FolderId("there")
LOST = "folder_unavailable"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stranded_work, "FOLDER_SECONDS", 0.0)


def watching(store: Store, started: list[Claim] | None = None) -> StrandedWork:
    agents = {DEFAULT_AGENT: hosted_agent()}
    placement = Placement(folder=HERE, checked=True)
    transactions = TurnTransactions(store.owner, agents, placement)
    return StrandedWork(store, transactions, (started if started is not None else []).append)


async def waiting(store: Store, id: str, folder: FolderId | None, chat: str = "7") -> None:
    """Adds a message that waits in the inbox. If `folder` is given, the attachments of the message
    are in this folder."""
    await store.run(sessions.touch, session(chat), SOURCE, None, "hi", NOW)
    await store.run(inbox.insert, id, said(id), session(chat), None, THEM, "pending", folder)


async def running_turn(store: Store, folder: FolderId) -> None:
    """Adds a running turn that belongs to another process and needs the files in the folder."""
    await store.run(sessions.touch, session(), SOURCE, None, "hi", NOW)
    await store.run(inbox.insert, "t", said("t"), session(), None, THEM, "bound")
    await store.run(turns.insert, replace(turn_row("t"), owner=THEM, folder=folder), "main", "7")


async def give_folder(store: Store, owner: OwnerId, folder: FolderId) -> None:
    change = "update owners set folder = ? where id = ? returning id"
    await rows(store, change, folder, owner)


async def test_a_turn_without_a_living_owner_fails_and_names_the_node(tmp_path: Path) -> None:
    async with open_test_store(tmp_path, "gateway") as store:
        await running_turn(store, THERE)
        place = NodeFolder(id=THERE, path="/srv")
        await store.run(folders.record, place, OwnerId("node1"), "alpha", NOW)
        assert await watching(store).look()
        ((state, code, reason),) = await rows(store, "select state, code, reason from turns")
        assert (state, code) == ("failed", LOST)
        assert "on node node1 (alpha)" in reason
        assert not await watching(store).look()


async def test_work_waits_before_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stranded_work, "FOLDER_SECONDS", 60.0)
    async with open_test_store(tmp_path, "gateway") as store:
        await running_turn(store, THERE)
        stranded = watching(store)
        assert not await stranded.look()
        monkeypatch.setattr(stranded_work, "FOLDER_SECONDS", 0.0)
        assert await stranded.look()


@pytest.mark.parametrize("kind", ["gateway", "terminal"])
async def test_the_turn_of_a_living_process_is_left_alone(tmp_path: Path, kind: str) -> None:
    async with (
        open_test_store(tmp_path, "gateway") as store,
        open_test_store(tmp_path, "gateway" if kind == "gateway" else "terminal") as other,
    ):
        await running_turn(store, THERE)
        await rows(store, "update turns set owner = ? returning id", other.owner)
        await rows(
            store, "update owners set folder = ? where id = ? returning id", THERE, other.owner
        )
        assert not await watching(store).look()
        assert await rows(store, "select state, epoch from turns") == [("running", 1)]


async def test_work_that_needs_no_other_folder_is_left_alone(tmp_path: Path) -> None:
    async with open_test_store(tmp_path, "gateway") as store:
        await rows(
            store, "update owners set folder = ? where id = ? returning id", HERE, store.owner
        )
        await running_turn(store, HERE)
        await waiting(store, "m", None, "8")
        assert not await watching(store).look()


async def test_a_message_fails_as_a_turn_that_can_be_repeated(tmp_path: Path) -> None:
    async with open_test_store(tmp_path, "gateway") as store:
        await waiting(store, "m1", THERE)
        assert await watching(store).look()
        found = await rows(store, "select id, state, code, temporary, folder from turns")
        assert found == [("m1", "failed", LOST, 1, THERE)]
        # The session is now bound to the folder, because its message has an attachment there.
        assert await rows(store, "select folder from sessions") == [(THERE,)]
        assert await rows(store, "select state, turn from inbox") == [("done", "m1")]
        ((state, content),) = await rows(store, "select state, content from deliveries")
        assert state == "ready"
        assert b"The files of this conversation are on a node that is not known" in bytes(content)


async def test_a_message_that_can_not_be_read_is_given_up(tmp_path: Path) -> None:
    async with open_test_store(tmp_path, "gateway") as store:
        await waiting(store, "m1", THERE)
        await rows(store, "update inbox set crc = crc + 1 returning id")
        assert await watching(store).look()
        assert await rows(store, "select state from inbox") == [("done",)]
        assert not await watching(store).look()


async def test_an_older_message_that_can_run_elsewhere_is_not_failed(tmp_path: Path) -> None:
    async with open_test_store(tmp_path, "gateway") as store:
        await waiting(store, "m1", None)
        await waiting(store, "m2", THERE)
        assert not await watching(store).look()
        assert await rows(store, "select state from inbox") == [("pending",), ("pending",)]


async def test_work_of_an_agent_that_is_not_hosted_is_left_alone(tmp_path: Path) -> None:
    async with open_test_store(tmp_path, "gateway") as store:
        key = session(agent="gone")
        await store.run(inbox.insert, "m", said("m"), key, None, THEM, "pending", THERE)
        assert not await watching(store).look()
        assert await rows(store, "select state from inbox") == [("pending",)]
