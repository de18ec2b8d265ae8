"""Messages of `hermes send` and of tools are sent once, to the right chats, with their files."""

import operator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from hermes.control.directory import Directory
from hermes.control.media import MediaIntake
from hermes.control.messenger import ChatMessenger, SendOrder
from hermes.control.routing import DEFAULT_AGENT
from hermes.control.sending import REPEAT
from hermes.control.targets import BadTarget
from hermes.core.tools.send_message import send_message
from hermes.settings.approvals import ApprovalSettings
from hermes.state import chats
from hermes.state.media import MediaCache
from hermes.state.paths import Home
from hermes.testing.platforms import ChatServer, PlainAdapter, RichAdapter, fake_targets
from hermes.testing.rows import NOW
from hermes.testing.running import QUIET, TroubledStore, rows, running, until, until_rows
from hermes.testing.scripted import ScriptedModel, calls, says
from hermes.testing.stores import open_test_store
from hermes.types.errors import Rejected, TargetGone
from hermes.types.identity import Target
from hermes.types.messages import Content, MessageRef, ToolMessage
from hermes.types.sending import OutgoingFile, SendResult
from hermes.types.store import Store
from hermes.types.web import WebFile

SENDING = replace(
    QUIET,
    tools=(send_message,),
    targets=fake_targets("rich"),
    approvals=ApprovalSettings(mode="off"),
)
FILE = OutgoingFile(name="report.txt", data=b"all is well")


async def download(url: str, limit: int) -> WebFile:
    raise AssertionError(f"nothing is downloaded: {url}")


def messenger(store: Store, folder: Path) -> ChatMessenger:
    media = MediaIntake(MediaCache(Home(root=folder).media), download)
    return ChatMessenger(store, Directory(store, fake_targets("rich", home="3")), media)


def order(key: str, to: str, text: str = "hello", *files: OutgoingFile) -> SendOrder:
    return SendOrder(key=key, to=to, text=text, files=files, agent=DEFAULT_AGENT, mirror=False)


async def sent(folder: Path, *orders: SendOrder, within: float = 10.0) -> list[SendResult]:
    """Sends the messages over a separate connection to the store, as `hermes send` does in a
    process without a gateway. Waits at most `within` seconds for the results."""
    async with open_test_store(folder) as store:
        outside = messenger(store, folder)
        pending = [one for each in orders for one in await outside.send(each)]
        return await outside.results(pending, within)


async def test_a_message_is_sent_once_for_each_key(tmp_path: Path) -> None:
    server = ChatServer()
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([])):
        wanted = order("k", "rich, rich:4:9")
        results = await sent(tmp_path, wanted, wanted)
    assert [(one.target, one.state) for one in results] == [
        ("rich:3", "delivered"),
        ("rich:4:9", "delivered"),
    ] * 2
    assert [server.texts("3"), server.texts("4")] == [["hello"], ["hello"]]


async def test_nothing_is_stored_if_one_target_is_wrong(tmp_path: Path) -> None:
    async with open_test_store(tmp_path) as store:
        with pytest.raises(BadTarget):
            await messenger(store, tmp_path).send(order("k", "rich:4, rich:Nobody"))
        with pytest.raises(Rejected, match="nothing to send"):
            await messenger(store, tmp_path).send(order("k", "rich:4", " "))
        assert await rows(store, "select 1 from deliveries") == []


async def test_each_file_is_a_delivery_with_a_copy_of_the_file(tmp_path: Path) -> None:
    server = ChatServer()
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([])) as gateway:
        (result,) = await sent(tmp_path, order("k", "rich:4", "Here:", FILE, FILE))
        states = await rows(gateway._store, "select state from deliveries")
    assert result.state == "delivered"
    assert states == [("delivered",)] * 3
    files = [file for one in server.messages.values() for file in one.content.attachments]
    assert [(file.name, file.kind, file.media_type) for file in files] == [
        ("report.txt", "file", "text/plain")
    ] * 2
    assert [Path(file.path).read_bytes() for file in files] == [FILE.data] * 2


class FilesRefused(RichAdapter):
    """A platform that refuses the file `bad.exe`."""

    refused: Exception = Rejected("the type of the file is forbidden")

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        if [one.name for one in content.attachments] == ["bad.exe"]:
            raise self.refused
        return await super().send(target, content, key)


async def test_a_refused_file_does_not_block_the_others_and_the_person_is_told(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    bad = OutgoingFile(name="bad.exe", data=b"MZ")
    async with running(tmp_path, [FilesRefused(server)], ScriptedModel([])):
        (result,) = await sent(tmp_path, order("k", "rich:4", "Here:", bad, FILE))
        notice = "(bad.exe could not be sent: the type of the file is forbidden)"
        await until(lambda: notice in server.texts("4"))
    assert result.state == "refused"
    assert result.reason == "bad.exe: the type of the file is forbidden"
    texts = [one.text or one.content.attachments[0].name for one in server.messages.values()]
    assert texts == ["Here:", "report.txt", notice]


async def test_a_crash_between_text_and_file_repeats_no_text_and_loses_no_file(
    tmp_path: Path,
) -> None:
    reached = anyio.Event()

    class Hanging(RichAdapter):
        async def send(self, target: Target, content: Content, key: str) -> MessageRef:
            if content.attachments:
                reached.set()
                await anyio.sleep_forever()
            return await super().send(target, content, key)

    server = ChatServer()
    async with running(tmp_path, [Hanging(server)], ScriptedModel([])):
        await sent(tmp_path, order("k", "rich:4", "Here:", FILE), within=0)
        await reached.wait()
    assert server.texts("4") == ["Here:"]
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([])):
        await until(lambda: len(server.messages) == 2)
    text, file = server.messages.values()
    assert text.text == "Here:"
    assert [one.name for one in file.content.attachments] == ["report.txt"]
    assert file.text == REPEAT.strip()


def sends(to: str, text: str = "the news", **more: object) -> ScriptedModel:
    return ScriptedModel([calls(("send_message", {"to": to, "text": text, **more})), says("done")])


def results_of(model: ScriptedModel) -> list[str]:
    messages = model.requests[-1].messages
    return [one.text for one in messages if isinstance(one, ToolMessage)]


async def test_the_tool_sends_to_its_own_chat_and_to_known_chats(tmp_path: Path) -> None:
    server = ChatServer()
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([says("hi")]), SENDING):
        server.says("hello", chat="2", name="Ann")
        await until(lambda: server.texts("2") == ["hi"])
    model = sends("rich:Ann, origin")
    async with running(tmp_path, [RichAdapter(server)], model, SENDING):
        server.says("tell Ann")
        await until(lambda: "done" in server.texts("1"))
    assert server.texts("2") == ["hi", "the news"]
    assert server.texts("1") == ["the news", "done"]
    assert results_of(model) == ["Delivered to rich:2.\nDelivered to rich:1."]


async def test_the_tool_may_not_write_to_a_chat_that_has_never_written(tmp_path: Path) -> None:
    server = ChatServer()
    model = sends("rich:77")
    async with running(tmp_path, [RichAdapter(server)], model, SENDING):
        server.says("write to 77")
        await until(lambda: "done" in server.texts("1"))
    assert server.texts("77") == []
    (result,) = results_of(model)
    assert "No message has come from rich:77 yet, so you may not write there." in result


async def test_the_tool_sends_files_of_the_workspace(tmp_path: Path) -> None:
    server = ChatServer()
    model = sends("origin", "", files=["out/report.txt"])
    async with running(tmp_path, [RichAdapter(server)], model, SENDING):
        folder = tmp_path / "workspace" / "out"
        folder.mkdir(parents=True)
        (folder / "report.txt").write_bytes(FILE.data)
        server.says("send me the report")
        await until(lambda: "done" in server.texts("1"))
    (file,) = [file for one in server.messages.values() for file in one.content.attachments]
    assert (file.name, Path(file.path).read_bytes()) == ("report.txt", FILE.data)


async def test_a_tool_call_that_is_repeated_after_a_crash_sends_nothing_twice(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    reached = anyio.Event()

    async def stop_before(transaction: str) -> None:
        if transaction == "TurnCheckpoint.answered.<locals>.work":
            reached.set()
            await anyio.sleep_forever()

    stuck = replace(SENDING, wrap_store=lambda store: TroubledStore(store, stop_before))
    model = sends("origin")
    async with running(tmp_path, [RichAdapter(server)], model, stuck):
        server.says("tell me")
        await reached.wait()
    assert server.texts("1") == ["the news"]
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([says("done")]), SENDING):
        await until(lambda: "done" in server.texts("1"))
    assert server.texts("1") == ["the news", "done"]


async def test_a_chat_that_is_gone_refuses_at_once_until_it_writes_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = ChatServer()
    blocked = True
    server.trouble = lambda kind, chat: (
        TargetGone("blocked by the user") if blocked and chat == "4" else None
    )
    model = ScriptedModel([says("welcome back")])
    async with running(tmp_path, [PlainAdapter(server, "rich")], model):
        results = await sent(tmp_path, order("a", "rich:4"), order("b", "rich:4"))
        assert [(one.state, one.reason) for one in results] == [
            ("refused", "blocked by the user")
        ] * 2
        await sent(tmp_path, order("c", "rich:4"))
        assert len(server.calls) == 1
        assert "nothing can be sent to a chat of rich any more" in caplog.text
        blocked = False
        server.says("I am back", chat="4")
        await until(lambda: server.texts("4") == ["welcome back"])
        (last,) = await sent(tmp_path, order("d", "rich:4"))
    assert last.state == "delivered"
    assert server.texts("4") == ["welcome back", "hello"]


async def test_a_delivery_to_a_chat_that_is_gone_is_not_tried(tmp_path: Path) -> None:
    server = ChatServer()
    async with open_test_store(tmp_path) as store:
        await messenger(store, tmp_path).send(order("a", "rich:4"))
        await store.run(chats.mark_gone, "rich", "4", "kicked", NOW)
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([])) as gateway:
        query = "select 1 from deliveries where state = 'ready'"
        await until_rows(gateway._store, query, operator.not_)
        assert await rows(gateway._store, "select state, error from deliveries") == [
            ("dead", "kicked")
        ]
    assert server.calls == []
