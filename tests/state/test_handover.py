"""A conversation moves to another session with all its rows."""

from pathlib import Path

from hermes.state import conversations, handover, sessions, transcript
from hermes.state.handover import PrivateChat
from hermes.state.transcript import TranscriptWriter
from hermes.testing.running import rows
from hermes.testing.stores import open_test_store
from hermes.types.identity import AgentId, ChatKind, FolderId, PersonId, SessionKey, Source, TurnId
from hermes.types.messages import UserMessage
from hermes.types.store import Work


def key(platform: str, kind: ChatKind = "private") -> SessionKey:
    return SessionKey(agent=AgentId("main"), platform=platform, kind=kind, chat="1")


def said(session: SessionKey, text: str, now: float) -> Work[None]:
    """Adds a message to the session, in a turn of its own."""
    source = Source(
        platform=session.platform,
        account=f"{session.platform}.b",
        chat_kind=session.kind,
        chat_id="1",
        user_id="7",
    )
    row = yield from sessions.touch(session, source, PersonId("p"), text, now)
    writer = TranscriptWriter(
        turn=TurnId(text),
        session=session,
        generation=row.generation,
        transient=False,
        account=source.account,
        person=None,
    )
    yield from transcript.append(writer, -1, 0, UserMessage(text=text), now)


async def test_a_conversation_moves_with_its_title_model_folder_and_messages(
    tmp_path: Path,
) -> None:
    here, there = key("a"), key("b")
    async with open_test_store(tmp_path) as store:
        for session, text in ((here, "one"), (here, "two"), (there, "old")):
            await store.run(said, session, text, 1.0)
        await store.run(sessions.set_model, str(here), "p/m")
        await store.run(sessions.use_folder, str(here), 0, FolderId("f"))
        (chat,) = await store.read(handover.private_chats, AgentId("main"), "b.b")
        assert chat == PrivateChat(
            session=str(there),
            platform="b",
            account="b.b",
            chat_id="1",
            thread_id=None,
            user_id="7",
        )
        assert await store.run(handover.hand_over, str(here), chat, 2.0) == "one"
        entries = await store.read(transcript.entries, str(there))
        assert [(one.generation, one.message) for one in entries] == [
            (1, UserMessage(text="one")),
            (1, UserMessage(text="two")),
            (0, UserMessage(text="old")),
        ]
        moved = await store.read(sessions.get, str(there))
        assert (moved.generation, moved.model, moved.folder) == (1, "p/m", "f")
        current, past = await store.read(conversations.listed)
        assert (current.key, current.title, current.current) == (str(there), "one", True)
        assert (past.key, past.title, past.current) == (str(there), "old", False)
        left = await store.read(sessions.get, str(here))
        assert (left.generation, left.folder) == (1, None)
        assert await rows(store, "select * from messages where session = ?", str(here)) == []
        assert await store.run(handover.hand_over, str(here), chat, 3.0) is None
        assert await store.run(handover.hand_over, "agent:main:x:private:1", chat, 3.0) is None


async def test_only_private_chats_of_the_agent_are_found(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        await store.run(said, key("a", "group"), "one", 1.0)
        assert await store.read(handover.private_chats, AgentId("main"), "a") == []
        await store.run(said, key("a"), "two", 1.0)
        assert len(await store.read(handover.private_chats, AgentId("main"), "a")) == 1
        assert await store.read(handover.private_chats, AgentId("other"), "a") == []
