"""Both databases record the folders of sessions, turns and messages."""

from pathlib import Path

from msgspec.structs import replace

from hermes.state import conversations, folders, inbox, owners, sessions, transcript, turns
from hermes.state.folders import FolderPlace
from hermes.state.turns import TurnRow
from hermes.testing.rows import NOW, SOURCE, THEM, US, said, session, turn_row, writer
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.types.deployment import NodeFolder
from hermes.types.identity import AgentId, FolderId, OwnerId
from hermes.types.messages import UserMessage
from hermes.types.store import Store

HERE, THERE = FolderId("here"), FolderId("there")
KEY = session()


def a_turn(id: str, chat: str, folder: FolderId | None, owner: OwnerId = US) -> TurnRow:
    return replace(turn_row(id, str(session(chat))), folder=folder, owner=owner)


async def touched(store: Store, chat: str = "7") -> sessions.SessionRow:
    return await store.run(sessions.touch, session(chat), SOURCE, None, "hi", NOW)


async def test_the_place_of_a_folder_is_the_node_that_used_it_last(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        assert await store.read(folders.place_of, HERE) is None
        await store.run(folders.record, NodeFolder(id=HERE, path="/one"), US, "alpha", NOW)
        await store.run(folders.record, NodeFolder(id=HERE, path="/two"), THEM, "beta", NOW)
        found = await store.read(folders.place_of, HERE)
        assert found == FolderPlace(node=THEM, host="beta", path="/two")


async def test_the_list_of_living_owners_leaves_dead_processes_out(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(owners.register, US, "gateway", NOW, HERE)
        await store.run(owners.register, THEM, "terminal", NOW, THERE)
        found = await store.read(folders.living_owners, {US})
        assert [(one.id, one.kind, one.folder) for one in found] == [(THEM, "terminal", THERE)]


async def test_a_folder_is_recorded_for_the_conversation_that_uses_it(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        assert (await touched(store)).folder is None
        await store.run(transcript.append, writer("t"), 0, 0, UserMessage(text="hi"), NOW)
        await store.run(sessions.use_folder, str(KEY), 0, HERE)
        assert (await touched(store)).folder == HERE
        await store.run(sessions.begin_anew, str(KEY), NOW)
        assert (await touched(store)).folder is None
        # Generation 0 is the conversation that has ended. A late turn of that conversation must not
        # bind the new conversation to a folder.
        await store.run(sessions.use_folder, str(KEY), 0, THERE)
        assert (await touched(store)).folder is None
        (past,) = [
            one
            for one in await store.read(conversations.of_generation, str(KEY), 0)
            if not one.current
        ]
        await store.run(conversations.reopen, past)
        assert (await touched(store)).folder == HERE


async def test_an_ended_conversation_is_left_to_the_nodes_with_its_folder(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        for chat, folder in (("1", THERE), ("2", None), ("3", HERE)):
            await touched(store, chat)
            if folder:
                await store.run(sessions.use_folder, str(session(chat)), 0, folder)
            await store.run(sessions.begin_anew, str(session(chat)), NOW + int(chat))
        taken = [await store.run(sessions.take_ending, NOW + 9, 9.0, None, HERE) for _ in range(3)]
        assert [one.session if one else None for one in taken] == [
            str(session("2")),
            str(session("3")),
            None,
        ]
        left = await store.run(sessions.take_ending, NOW + 9, 9.0)
        assert left is not None
        assert left.session == str(session("1"))


async def test_the_needed_folders_are_those_of_open_turns_and_waiting_messages(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        assert await store.read(folders.needed_by_work) == set()
        await store.run(turns.insert, a_turn("t1", "1", FolderId("open")), "main", "1")
        ended = replace(a_turn("t2", "2", FolderId("ended")), state="completed")
        await store.run(turns.insert, ended, "main", "2")
        await store.run(inbox.insert, "m1", said("k1"), session("3"), None, US)
        media = FolderId("media")
        await store.run(inbox.insert, "m2", said("k2"), session("4"), None, US, "pending", media)
        await touched(store, "5")
        await store.run(sessions.use_folder, str(session("5")), 0, FolderId("session"))
        await store.run(inbox.insert, "m3", said("k3"), session("5"), None, US, "pending", media)
        assert await store.read(folders.needed_by_work) == {"open", "media", "session"}


async def waiting_message(
    store: Store, id: str, owner: OwnerId, used: FolderId | None, media: FolderId | None = None
) -> None:
    """Adds a message that waits in a session of its own. The session is bound to the folder `used`,
    and the attachments of the message are in the folder `media`."""
    await touched(store, id)
    if used:
        await store.run(sessions.use_folder, str(session(id)), 0, used)
    await store.run(inbox.insert, id, said(id), session(id), None, owner, "pending", media)


async def test_a_gateway_takes_the_messages_that_need_its_folder_from_all_gateways(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(owners.register, OwnerId("terminal"), "terminal", NOW, HERE)
        await waiting_message(store, "own", US, None)
        await waiting_message(store, "own, used here", US, HERE)
        await waiting_message(store, "own, used there", US, THERE)
        await waiting_message(store, "theirs", THEM, None)
        await waiting_message(store, "theirs, used here", THEM, HERE)
        await waiting_message(store, "theirs, media here", THEM, None, HERE)
        await waiting_message(store, "theirs, media here, used there", THEM, THERE, HERE)
        await waiting_message(store, "terminal's, used here", OwnerId("terminal"), HERE)
        found = await store.read(inbox.idle_sessions_of, US, HERE)
        assert set(found) == {
            str(session(chat))
            for chat in ("own", "own, used here", "theirs, used here", "theirs, media here")
        }
        stranded = await store.read(inbox.idle_sessions_needing, THERE)
        assert set(stranded) == {
            str(session(chat)) for chat in ("own, used there", "theirs, media here, used there")
        }
        first = await store.read(inbox.first_pending, str(session("own, used there")), US)
        assert first is not None
        assert first.folder == THERE


async def test_suspended_turns_of_a_dead_process_are_adopted_with_their_folder_only(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        for id, folder in (("t1", None), ("t2", HERE), ("t3", THERE)):
            row = replace(a_turn(id, id, folder, THEM), state="suspended")
            await store.run(turns.insert, row, "main", id)
        await store.run(turns.adopt_suspended, [THEM], US, [AgentId("main")], HERE)
        found = await rows(store, "select id, owner from turns order by id")
        assert found == [("t1", US), ("t2", US), ("t3", THEM)]
        left = await store.read(folders.suspended_with, THERE)
        assert [row.id for row in left] == ["t3"]
        await store.run(owners.register, THEM, "terminal", NOW)
        assert await store.read(folders.suspended_with, THERE) == []
        await store.run(turns.adopt_suspended, [THEM], US, [AgentId("main")])
        assert await store.read(folders.suspended_with, THERE) != []


async def test_the_folder_of_a_turn_is_stored_when_it_is_used(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(turns.insert, a_turn("t", "1", None), "main", "1")
        await touched(store, "1")
        assert await store.read(folders.running_with, HERE) == []
        await store.run(folders.use, a_turn("t", "1", None), HERE)
        (row,) = await store.read(folders.running_with, HERE)
        assert row.folder == HERE
        assert (await touched(store, "1")).folder == HERE


async def test_the_folder_of_a_stateless_turn_is_stored_with_the_turn_alone(
    tmp_path: Path,
) -> None:
    async with open_test_store(tmp_path) as store:
        await touched(store, "1")
        row = replace(a_turn("t", "1", None), transient=True)
        await store.run(turns.insert, row, "main", "1")
        await store.run(folders.use, row, HERE)
        assert [one.id for one in await store.read(folders.running_with, HERE)] == ["t"]
        assert (await touched(store, "1")).folder is None
