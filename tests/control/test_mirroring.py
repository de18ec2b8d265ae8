"""A sent message is added to the history of the chat's session, unless the chat has several
sessions."""

import operator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.control.directory import Directory
from hermes.control.media import MediaIntake
from hermes.control.messenger import ChatMessenger, SendOrder
from hermes.control.mirroring import SENT_FIRST
from hermes.control.routing import DEFAULT_AGENT
from hermes.core.tools.send_message import send_message
from hermes.state.media import MediaCache
from hermes.state.paths import Home
from hermes.testing.platforms import ChatServer, RichAdapter, fake_targets
from hermes.testing.running import QUIET, refused, rows, running, until, until_rows
from hermes.testing.scripted import ScriptedModel, calls, says
from hermes.testing.stores import open_test_store
from hermes.types.errors import Rejected
from hermes.types.identity import AgentId
from hermes.types.messages import AssistantMessage, UserMessage
from hermes.types.sending import OutgoingFile, SendResult
from hermes.types.web import WebFile

SENDING = replace(QUIET, tools=(send_message,), targets=fake_targets("rich"))
FILE = OutgoingFile(name="plan.txt", data=b"a plan")


async def download(url: str, limit: int) -> WebFile:
    raise AssertionError(f"nothing is downloaded: {url}")


async def sent(
    folder: Path,
    to: str,
    *,
    mirror: bool = True,
    agent: AgentId = DEFAULT_AGENT,
    files: tuple[OutgoingFile, ...] = (),
) -> SendResult:
    async with open_test_store(folder) as store:
        media = MediaIntake(MediaCache(Home(root=folder).media), download)
        messenger = ChatMessenger(store, Directory(store, fake_targets("rich")), media)
        order = SendOrder(key=to, to=to, text="news", files=files, agent=agent, mirror=mirror)
        (result,) = await messenger.results(await messenger.send(order), 10.0)
        return result


def history(model: ScriptedModel) -> list[tuple[str, str]]:
    """Returns the roles and texts of the messages that the model saw in its last call."""
    assert not refused(model.requests[-1])
    return [
        ("user" if isinstance(one, UserMessage) else "assistant", one.text)
        for one in model.requests[-1].messages
        if isinstance(one, UserMessage | AssistantMessage)
    ]


async def test_a_sent_message_is_in_the_history_of_the_chat(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([says("hello"), says("you got news")])
    async with running(tmp_path, [RichAdapter(server)], model):
        server.says("hi", chat="2")
        await until(lambda: "hello" in server.texts("2"))
        assert (await sent(tmp_path, "rich:2", files=(FILE,))).mirrored
        server.says("what was that?", chat="2")
        await until(lambda: "you got news" in server.texts("2"))
    assert history(model) == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("assistant", "news"),
        ("assistant", "[file plan.txt]"),
        ("user", "what was that?"),
    ]


async def test_after_the_command_new_a_sent_message_begins_a_new_history(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([says("hello"), says("you got news")])
    async with running(tmp_path, [RichAdapter(server)], model):
        server.says("hi", chat="2")
        await until(lambda: "hello" in server.texts("2"))
        server.says("/new", chat="2")
        await until(lambda: len(server.texts("2")) == 2)
        await sent(tmp_path, "rich:2")
        server.says("what was that?", chat="2")
        await until(lambda: "you got news" in server.texts("2"))
    assert history(model) == [
        ("user", SENT_FIRST),
        ("assistant", "news"),
        ("user", "what was that?"),
    ]


async def test_background_output_is_not_mirrored_unless_requested(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([says("hello"), says("what?")])
    async with running(tmp_path, [RichAdapter(server)], model):
        server.says("hi", chat="2")
        await until(lambda: "hello" in server.texts("2"))
        assert not (await sent(tmp_path, "rich:2", mirror=False)).mirrored
        server.says("what was that?", chat="2")
        await until(lambda: "what?" in server.texts("2"))
    assert ("assistant", "news") not in history(model)


async def test_a_message_to_a_group_with_several_sessions_is_in_none_of_them(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    model = ScriptedModel([says("one"), says("two")])
    async with running(tmp_path, [RichAdapter(server)], model) as gateway:
        server.says("hi", chat="2", user="7", kind="group")
        await until(lambda: "one" in server.texts("2"))
        server.says("hi", chat="2", user="8", kind="group")
        await until(lambda: "two" in server.texts("2"))
        assert not (await sent(tmp_path, "rich:2")).mirrored
        found = await rows(gateway._store, "select text from messages where text = 'news'")
    assert found == []
    assert "news" in server.texts("2")


@pytest.mark.parametrize(
    ("to", "agent"), [("rich:3", "main"), ("rich:2:9", "main"), ("rich:2", "b")]
)
async def test_a_message_to_another_chat_thread_or_agent_is_not_mirrored(
    tmp_path: Path, to: str, agent: str
) -> None:
    server = ChatServer()
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([says("hello")])):
        server.says("hi", chat="2")
        await until(lambda: "hello" in server.texts("2"))
        result = await sent(tmp_path, to, agent=AgentId(agent))
    assert (result.state, result.mirrored) == ("delivered", False)


async def test_a_refused_message_is_not_mirrored(tmp_path: Path) -> None:
    server = ChatServer()
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([says("hello")])) as gateway:
        server.says("hi", chat="2")
        await until(lambda: "hello" in server.texts("2"))
        server.trouble = lambda kind, chat: Rejected("no")
        assert (await sent(tmp_path, "rich:2")).state == "refused"
        assert not await rows(gateway._store, "select 1 from messages where text = 'news'")


async def test_the_session_that_sends_to_its_own_chat_has_the_message_once(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    call = calls(("send_message", {"to": "origin", "text": "news"}))
    model = ScriptedModel([call, says("done"), says("again")])
    async with running(tmp_path, [RichAdapter(server)], model, SENDING):
        server.says("hi", chat="2")
        await until(lambda: "done" in server.texts("2"))
        server.says("and?", chat="2")
        await until(lambda: "again" in server.texts("2"))
    assert ("assistant", "news") not in history(model)


async def test_a_session_that_was_deleted_meanwhile_receives_nothing(tmp_path: Path) -> None:
    server = ChatServer()
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([says("hello")])):
        server.says("hi", chat="2")
        await until(lambda: "hello" in server.texts("2"))
    async with open_test_store(tmp_path) as store:
        media = MediaIntake(MediaCache(Home(root=tmp_path).media), download)
        messenger = ChatMessenger(store, Directory(store, fake_targets("rich")), media)
        order = SendOrder(key="k", to="rich:2", text="news", agent=DEFAULT_AGENT, mirror=True)
        (pending,) = await messenger.send(order)
        assert pending.mirrored
        await rows(store, "delete from messages")
        await rows(store, "delete from sessions")
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([])) as gateway:
        await until(lambda: "news" in server.texts("2"))
        query = "select 1 from deliveries where state <> 'delivered'"
        await until_rows(gateway._store, query, operator.not_)
        assert await rows(gateway._store, "select 1 from messages") == []
