"""The adapter fulfils the contract of adapters, and talks to the Bot API as Telegram expects."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from msgspec.structs import replace

from hermes.entry.platforms.telegram.adapter import TelegramAdapter
from hermes.entry.platforms.telegram.api import BotApi
from hermes.entry.platforms.telegram.manifest import TELEGRAM, TelegramAccount, TelegramConfig
from hermes.settings.sections import StreamingSettings
from hermes.testing.adapters import (
    AdapterContract,
    FakePlatform,
    Listener,
    MemoryCursor,
    listening,
)
from hermes.testing.running import QUIET, Conditions, held, running, until
from hermes.testing.samples import PNG
from hermes.testing.scripted import Answer, ScriptedModel, says
from hermes.testing.telegram import BotApiServer
from hermes.testing.telegram_records import ApiCall, ScriptedFailure
from hermes.types.commands import CommandContext, CommandReply, SlashCommand
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.events import TextDelta
from hermes.types.identity import Target
from hermes.types.messages import (
    Accepted,
    AssistantMessage,
    Attachment,
    AttachmentKind,
    Choices,
    Content,
    MessageEvent,
    MessageRef,
    Receipt,
    Refused,
    UserMessage,
)
from hermes.types.models import ModelRequest
from hermes.types.nodes import Document
from hermes.types.protocols import Emit
from hermes.types.store import Work

TOKEN = "100:secret-token"
PERSON, GROUP = 7, -1001


class TelegramPlatform:
    """The fake server with one private chat, and the adapter of its bot."""

    quality = TELEGRAM.quality
    start = None

    def __init__(self, server: BotApiServer) -> None:
        self.server = server
        self.bot = server.add_bot(TOKEN, "our_bot")
        server.add_chat(PERSON)
        self.config = TelegramConfig(token=TOKEN, base_url=server.url)
        self.adapter = TelegramAdapter("telegram", self.config)
        self.target = Target(account="telegram", chat_id=str(PERSON))

    @property
    def echoed(self) -> int:
        return self.server.echoed

    @property
    def connections(self) -> int:
        return self.server.connections

    @property
    def typed(self) -> int:
        return len(self.server.actions)

    def says(self, text: str) -> None:
        self.server.says(PERSON, text)

    def presses(self, question: str, label: str) -> None:
        self.server.presses(PERSON, label)

    def shown(self) -> list[str]:
        return [one.source for one in self.server.messages.values() if one.file is None]

    def files(self) -> list[str]:
        return [one.file for one in self.server.messages.values() if one.file is not None]

    def fail(self, error: HermesError) -> None:
        match error:
            case RateLimited(retry_after=float(seconds)):
                failure = ScriptedFailure(
                    status=429, description="Too Many Requests", retry_after=int(seconds)
                )
            case AuthFailed():
                failure = ScriptedFailure(status=401, description="Unauthorized")
            case Disconnected():
                failure = ScriptedFailure()
            case _:
                failure = ScriptedFailure(status=400, description="Bad Request: chat not found")
        self.server.failures.append(failure)


@asynccontextmanager
async def telegram() -> AsyncIterator[TelegramPlatform]:
    async with BotApiServer().running() as server:
        yield TelegramPlatform(server)


class TestTelegram(AdapterContract):
    abilities = ("attachments", "buttons", "typing")

    @asynccontextmanager
    async def platform(self) -> AsyncIterator[FakePlatform]:
        async with telegram() as platform:
            yield platform


def polls(server: BotApiServer) -> list[ApiCall]:
    return [call for call in server.calls if call.method == "getUpdates"]


async def test_only_the_kinds_of_updates_that_are_read_are_requested() -> None:
    async with telegram() as platform, listening(platform) as listener:
        platform.says("hello")
        await until(lambda: listener.heard)
        (poll, *_) = polls(platform.server)
    assert poll.parameters["allowed_updates"] == ["message", "edited_message", "callback_query"]


async def test_the_offset_is_saved_after_the_message_was_accepted() -> None:
    cursor, saved = MemoryCursor(), list[str | None]()

    async def accept(event: MessageEvent) -> Receipt:
        saved.append(cursor.value)
        return Accepted(id=event.dedupe_key)

    async with telegram() as platform, anyio.create_task_group() as group:
        group.start_soon(platform.adapter.run, accept, lambda: None, cursor)
        platform.says("one")
        await until(lambda: cursor.value)
        first = int(cursor.value or 0)
        platform.says("two")
        await until(lambda: int(cursor.value or 0) == first + 1)
        group.cancel_scope.cancel()
    assert saved == [None, str(first)]


async def test_updates_are_read_although_their_numbers_have_become_smaller() -> None:
    cursor = MemoryCursor()
    cursor.value = str(10**9)
    async with telegram() as platform:
        platform.says("one")
        async with listening(platform, cursor=cursor) as listener:
            await until(lambda: int(cursor.value or 0) < 10**9)
            platform.says("two")
            await until(lambda: len(listener.heard) == 2)
    assert listener.texts() == ["one", "two"]


async def test_an_update_that_can_not_be_read_does_not_block_the_next_one() -> None:
    async with telegram() as platform, listening(platform) as listener:
        platform.server.says(PERSON, media_group_id=5)
        platform.says("next")
        await until(lambda: listener.heard)
    assert listener.texts() == ["next"]


async def test_the_parts_of_an_album_are_one_message_for_the_agent(tmp_path: Path) -> None:
    model = ScriptedModel([says("Nice.")])
    async with telegram() as platform:
        platform.server.files |= {"p1": PNG, "p2": PNG}
        for number in (1, 2):
            photo = [{"file_id": f"p{number}"}]
            platform.server.says(PERSON, photo=photo, media_group_id="a", caption="")
        async with running(tmp_path, [platform.adapter], model):
            await until(lambda: platform.server.texts(PERSON) == ["Nice."], 20)
    asked = model.requests[0].messages[-1]
    assert isinstance(asked, UserMessage)
    assert len(asked.attachments) == 2


async def test_a_button_press_is_acknowledged() -> None:
    async with telegram() as platform, listening(platform) as listener:
        choices = Choices(question="q1", prompt="Tea?", labels=("yes", "no"), text="Tea?")
        content = Content(text="Tea?", choices=(choices,))
        await platform.adapter.send(platform.target, content, "k1")
        platform.presses("q1", "yes")
        await until(lambda: listener.heard)
        await until(lambda: not platform.bot.queries)
    assert len(listener.heard) == 1
    assert platform.bot.alerts == []


async def test_a_refused_button_press_is_explained() -> None:
    class Refusing(Listener):
        async def accept(self, event: MessageEvent) -> Receipt:
            await super().accept(event)
            return Refused(reason="only Ann may decide it" + "!" * 300)

    async with telegram() as platform, listening(platform, Refusing()):
        choices = Choices(question="q1", prompt="Tea?", labels=("yes", "no"), text="Tea?")
        content = Content(text="Tea?", choices=(choices,))
        await platform.adapter.send(platform.target, content, "k1")
        platform.presses("q1", "yes")
        await until(lambda: platform.bot.alerts)
    (alert,) = platform.bot.alerts
    assert alert.startswith("Not accepted: only Ann may decide it!")
    assert len(alert) == 200


async def test_a_second_poller_disconnects_the_first() -> None:
    async with telegram() as platform:

        async def interfere() -> None:
            await until(lambda: platform.bot.polls)
            await BotApi(platform.server.url, TOKEN).call("getUpdates", list[int], {})

        async with anyio.create_task_group() as group:
            group.start_soon(interfere)
            with pytest.raises(Disconnected, match="another program"):
                await platform.adapter.run(Listener().accept, lambda: None, MemoryCursor())


async def test_in_webhook_mode_the_webhook_is_set_and_nothing_is_polled() -> None:
    async with telegram() as platform:
        config = replace(
            platform.config, webhook_url="https://bot.example/hook", webhook_secret="s3cret"
        )
        ready = anyio.Event()
        adapter = TelegramAdapter("telegram", config)
        async with anyio.create_task_group() as group:
            group.start_soon(adapter.run, Listener().accept, ready.set, MemoryCursor())
            await ready.wait()
            group.cancel_scope.cancel()
        call = next(call for call in platform.server.calls if call.method == "setWebhook")
        assert call.parameters["url"] == "https://bot.example/hook"
        assert call.parameters["secret_token"] == "s3cret"
        assert polls(platform.server) == []
        async with listening(platform) as listener:
            platform.says("polled again")
            await until(lambda: listener.heard)


async def test_an_edit_to_the_same_text_is_a_success() -> None:
    async with telegram() as platform:
        content = Content(text="<b>a</b>")
        ref = await platform.adapter.send(platform.target, content, "k1")
        await platform.adapter.edit(platform.target, ref, content)
        assert platform.shown() == ["<b>a</b>"]
        gone = MessageRef(id="999")
        with pytest.raises(Rejected, match="not found"):
            await platform.adapter.edit(platform.target, gone, content)


async def test_everything_is_sent_to_the_topic() -> None:
    async with telegram() as platform:
        platform.server.add_chat(GROUP, "supergroup", title="Team", topics=(4,))
        target = Target(account="telegram", chat_id=str(GROUP), thread_id="4")
        await platform.adapter.send(target, Content(text="a"), "k1")
        await platform.adapter.typing(target)
        (message,) = platform.server.messages.values()
        assert (message.chat, message.thread) == (GROUP, 4)
        with pytest.raises(Rejected, match="thread not found"):
            await platform.adapter.send(replace(target, thread_id="5"), Content(text="a"), "k2")


@pytest.mark.parametrize(
    ("kind", "media_type", "method"),
    [
        ("image", "image/png", "sendPhoto"),
        ("image", "image/gif", "sendDocument"),
        ("audio", "audio/ogg", "sendVoice"),
        ("audio", "audio/mpeg", "sendAudio"),
        ("audio", "audio/wav", "sendDocument"),
        ("video", "video/mp4", "sendVideo"),
        ("file", "application/pdf", "sendDocument"),
    ],
)
async def test_each_kind_of_file_has_its_method(
    tmp_path: Path, kind: AttachmentKind, media_type: str, method: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    file = Attachment(kind=kind, path=str(path), media_type=media_type)
    async with telegram() as platform:
        content = Content(text="<b>look</b>", attachments=(file,))
        await platform.adapter.send(platform.target, content, "k1")
        (message,) = platform.server.messages.values()
        assert (message.file, message.shown.text) == ("file", "look")
        assert platform.server.calls[-1].method == method


async def test_a_file_that_can_not_be_sent_is_rejected(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(50 * 1024 * 1024 + 1)
    async with telegram() as platform:
        for path, problem in ((large, "larger than 50 MB"), (tmp_path / "no", "can't be read")):
            content = Content(text="", attachments=(Attachment(kind="file", path=str(path)),))
            with pytest.raises(Rejected, match=problem):
                await platform.adapter.send(platform.target, content, "k1")


async def test_a_message_is_answered_by_a_preview_that_grows_into_the_answer(
    tmp_path: Path,
) -> None:
    done = anyio.Event()
    model = ScriptedModel([held(done, says("The *whole* answer is 42."), "The *whole* answer is")])
    async with telegram() as platform, running(tmp_path, [platform.adapter], model):
        platform.says("what is the answer?")
        await until(lambda: platform.server.texts(PERSON))
        done.set()
        await until(lambda: platform.server.texts(PERSON) == ["The whole answer is 42."])
        (message,) = platform.server.messages.values()
        assert message.source == "The <i>whole</i> answer is 42."
        assert len(message.versions) > 1
        assert message.versions[0] != message.versions[-1]
        assert "typing" in {action for _, action in platform.server.actions}


async def test_messages_that_waited_while_the_gateway_was_down_are_answered_in_order(
    tmp_path: Path,
) -> None:
    async with telegram() as platform:
        first, second = ScriptedModel([says("one!")]), ScriptedModel([says("two!"), says("three!")])
        async with running(tmp_path, [platform.adapter], first):
            platform.says("one")
            await until(lambda: platform.server.texts(PERSON) == ["one!"])
        platform.says("two")
        platform.says("three")
        async with running(tmp_path, [platform.adapter], second):
            await until(lambda: "three!" in platform.server.texts(PERSON))
        answers = [text for text in platform.server.texts(PERSON) if text.endswith("!")]
        assert answers == ["one!", "two!", "three!"]


async def test_a_photo_reaches_the_model(tmp_path: Path) -> None:
    model = ScriptedModel([says("A nice picture."), says("The same one.")])
    async with telegram() as platform, running(tmp_path, [platform.adapter], model):
        platform.server.files["p1"] = PNG
        platform.server.says(PERSON, photo=[{"file_id": "p1"}], caption="what is this?")
        await until(lambda: platform.server.texts(PERSON) == ["A nice picture."])
        platform.server.says(PERSON, photo=[{"file_id": "p1"}])
        await until(lambda: platform.server.texts(PERSON)[1:] == ["The same one."])
    message = model.requests[0].messages[-1]
    assert isinstance(message, UserMessage)
    assert message.text == "what is this?"
    assert [(file.kind, file.media_type) for file in message.attachments] == [
        ("image", "image/png")
    ]


async def test_a_document_is_saved_in_the_workspace_before_the_model_is_called(
    tmp_path: Path,
) -> None:
    found: list[bytes] = []

    async def answer(request: ModelRequest, emit: Emit) -> AssistantMessage:
        message = request.messages[-1]
        assert isinstance(message, UserMessage)
        path = tmp_path / "workspace" / message.attachments[0].saved
        found.append(path.read_bytes())
        path.write_bytes(b"changed by a tool")
        return AssistantMessage(text="A report.")

    model = ScriptedModel([answer, says("Thanks.")])
    async with telegram() as platform, running(tmp_path, [platform.adapter], model):
        platform.server.files["d1"] = b"a,b\n1,2\n"
        document = {"file_id": "d1", "file_name": "table.csv", "mime_type": "text/csv"}
        platform.server.says(PERSON, document=document, caption="what is this?")
        await until(lambda: platform.server.texts(PERSON) == ["A report."])
        platform.says("thanks")
        await until(lambda: platform.server.texts(PERSON)[1:] == ["Thanks."])
    (saved,) = (tmp_path / "workspace" / "inbox").iterdir()
    assert saved.name.endswith("-table.csv")
    assert found == [b"a,b\n1,2\n"]
    assert saved.read_bytes() == b"changed by a tool", "a later turn does not write it again"


async def test_the_bot_reacts_to_a_message_while_it_works_on_it(tmp_path: Path) -> None:
    seen = anyio.Event()
    model = ScriptedModel([held(seen, says("one"))])
    async with telegram() as platform:
        reacting = TelegramAdapter("telegram", replace(platform.config, reactions=True))
        async with running(tmp_path, [reacting], model):
            platform.says("hello")
            await until(lambda: list(platform.server.reactions.values()) == ["👀"])
            seen.set()
            await until(lambda: platform.server.texts(PERSON) == ["one"])


async def test_reactions_are_off_by_default() -> None:
    async with telegram() as platform:
        platform.says("hello")
        await platform.adapter.react(platform.target, "1")
        assert list(platform.server.reactions.values()) == [""]


async def test_a_chat_in_a_penalty_window_is_left_alone_until_the_window_ends(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([says("hello there")])
    async with telegram() as platform, running(tmp_path, [platform.adapter], model):
        platform.server.penalize(PERSON, 3)
        platform.says("hi")
        await until(lambda: platform.server.texts(PERSON) == ["hello there"], 20)
    # The server refuses every call for the chat for 3 seconds. The bot learns this from its first
    # refused call. Until then, two more calls may have started: the typing indicator and the
    # preview.
    assert 1 <= len(platform.server.impatient) <= 3


async def test_an_answer_whose_confirmation_was_lost_is_not_repeated(tmp_path: Path) -> None:
    model = ScriptedModel([says("the complete answer")])
    async with telegram() as platform, running(tmp_path, [platform.adapter], model):
        ready = platform.server.calls
        await until(lambda: any(call.method == "deleteWebhook" for call in ready))
        platform.server.failures = [ScriptedFailure(done=True)] * 3
        platform.says("hi")
        await until(lambda: "the complete answer" in platform.server.texts(PERSON), 20)
    assert platform.server.texts(PERSON).count("the complete answer") == 1


async def test_two_bots_in_a_group_each_answer_only_their_own_messages(tmp_path: Path) -> None:
    def mention(name: str) -> None:
        entity = {"type": "mention", "offset": 0, "length": len(name) + 1}
        server.says(GROUP, f"@{name} hello", entities=[entity])

    async with telegram() as platform:
        server = platform.server
        other = server.add_bot("200:other", "other_bot")
        server.add_chat(GROUP, "supergroup", title="Team")
        accounts = {"other": TelegramAccount(token="200:other")}
        config = replace(platform.config, accounts=accounts)
        adapters = [TelegramAdapter(name, config) for name in ("telegram", "telegram.other")]
        # The answer of each bot mentions the other bot. This mention must not start a turn of the
        # other bot.
        model = ScriptedModel([says("@other_bot hello"), says("@our_bot hello")])
        answers = ["@other_bot hello", "@our_bot hello"]
        async with running(tmp_path, adapters, model):
            server.says(GROUP, "hello everybody")
            mention("our_bot")
            await until(lambda: server.texts(GROUP) == answers[:1])
            mention("other_bot")
            await until(lambda: server.texts(GROUP) == answers)
            server.says(GROUP, "/status@other_bot")
            await until(lambda: server.texts(GROUP) == [*answers, "Idle."])
            # Both bots have received the reply `Idle.` as an update and acknowledged it, so no turn
            # can start any more.
            await until(lambda: not platform.bot.pending and not other.pending)
        assert [one.token for one in server.messages.values()] == [TOKEN, "200:other", "200:other"]
        assert len(model.requests) == 2
        assert [asked(request) for request in model.requests] == [
            ["@our_bot hello"],
            ["@other_bot hello"],
        ]


def asked(request: ModelRequest) -> list[str]:
    """Returns the texts of the user messages in a model request."""
    return [one.text for one in request.messages if isinstance(one, UserMessage)]


class TimedAdapter(TelegramAdapter):
    """Notes the time and the text of every edit."""

    def __init__(self, config: TelegramConfig) -> None:
        super().__init__("telegram", config)
        self.edits: list[tuple[float, str]] = []

    async def edit(self, target: Target, ref: MessageRef, content: Content) -> None:
        self.edits.append((anyio.current_time(), content.text))
        await super().edit(target, ref, content)


async def test_a_private_chat_with_drafts_shows_the_answer_in_a_draft(tmp_path: Path) -> None:
    done = anyio.Event()
    model = ScriptedModel([held(done, says("The *whole* answer is 42."), "The *whole* answer is")])
    async with telegram() as platform, running(tmp_path, [platform.adapter], model):
        platform.server.has_drafts = True
        platform.says("what is the answer?")
        await until(lambda: platform.server.drafts)
        assert platform.server.texts(PERSON) == []
        done.set()
        await until(lambda: platform.server.texts(PERSON) == ["The whole answer is 42."])
    ((chat, number),) = {(chat, number) for chat, number, _ in platform.server.drafts}
    assert chat == PERSON
    assert number
    assert all("42." not in text for _, _, text in platform.server.drafts[:1])


async def test_a_server_without_drafts_is_asked_only_once() -> None:
    async with telegram() as platform:
        assert not await platform.adapter.draft(platform.target, Content(text="a"), "k")
        platform.server.has_drafts = True
        assert not await platform.adapter.draft(platform.target, Content(text="a"), "k")
        assert [call.method for call in platform.server.calls] == ["sendMessageDraft"]


async def test_a_group_has_no_drafts() -> None:
    async with telegram() as platform:
        platform.server.has_drafts = True
        group = Target(account="telegram", chat_id=str(GROUP))
        assert not await platform.adapter.draft(group, Content(text="a"), "k")
        assert platform.server.calls == []


async def test_an_answer_to_an_upgraded_group_is_sent_to_the_supergroup(tmp_path: Path) -> None:
    async with telegram() as platform:
        server = platform.server
        server.add_chat(-5, "group")
        server.add_chat(GROUP, "supergroup")
        target, path = Target(account="telegram", chat_id="-5"), tmp_path / "a.txt"
        path.write_bytes(b"a")
        ref = await platform.adapter.send(target, Content(text="before"), "k1")
        server.upgraded[-5] = GROUP
        file = Attachment(kind="file", path=str(path))
        await platform.adapter.send(target, Content(text="", attachments=(file,)), "k2")
        later = await platform.adapter.send(target, Content(text="after"), "k3")
        await platform.adapter.edit(target, later, Content(text="edited"))
        with pytest.raises(Rejected, match="message to edit not found"):
            await platform.adapter.edit(target, ref, Content(text="gone"))
        assert server.texts(GROUP) == ["", "edited"]
        refused = [call for call in server.calls if call.status == 400]
        assert len(refused) == 2, "the new id is used at once after the first refusal"


async def test_the_general_topic_has_no_number() -> None:
    async with telegram() as platform:
        platform.server.add_chat(GROUP, "supergroup", is_forum=True, topics=(5,))
        for thread in ("1", "5", None):
            target = Target(account="telegram", chat_id=str(GROUP), thread_id=thread)
            await platform.adapter.send(target, Content(text="hello"), "k")
            await platform.adapter.typing(target)
        threads = [one.thread for one in platform.server.messages.values()]
        assert threads == [None, 5, None]


async def test_the_menu_shows_the_commands(tmp_path: Path) -> None:
    async with telegram() as platform, running(tmp_path, [platform.adapter], ScriptedModel([])):
        await until(lambda: platform.bot.menu)
    menu = {one.command: one.description for one in platform.bot.menu}
    assert menu["stop"]
    assert menu["help"] == "list the commands, or explain one"
    assert "exit" not in menu, "it works only in the terminal"
    assert "sethome" not in menu, "not every user may use it"


async def test_the_menu_keeps_the_limits_of_telegram() -> None:
    def command(name: str) -> SlashCommand:
        return SlashCommand(name=name, help="x" * 300, action=nothing)

    async with telegram() as platform:
        unclear = replace(command("unclear"), help="x")
        more = [command(f"more{number}") for number in range(120)]
        await platform.adapter.show_commands([command("with-dash"), unclear, *more])
        shown = platform.bot.menu
    assert (shown[0].command, shown[0].description) == ("more0", "x" * 256)
    assert len(shown) == 100


def nothing(_context: CommandContext) -> Work[CommandReply]:
    yield from ()
    return CommandReply(reply="")


@pytest.mark.parametrize("pause", [0.0, 0.005, 0.35])
async def test_edits_keep_their_interval_at_any_token_rate_and_the_last_is_the_answer(
    tmp_path: Path, pause: float
) -> None:
    words = [f"word{number}" for number in range(4 if pause > 0.1 else 200)]

    async def speak(_request: ModelRequest, emit: Emit) -> AssistantMessage:
        for word in words:
            emit(TextDelta(text=f"{word} "))
            await anyio.sleep(pause)
        await until(lambda: adapter.edits, 20)
        return AssistantMessage(text=" ".join(words))

    streaming = StreamingSettings(edit_interval=0.3, buffer_threshold=1)
    conditions = replace(QUIET, streaming=streaming)
    async with telegram() as platform:
        adapter = TimedAdapter(platform.config)
        async with running(tmp_path, [adapter], ScriptedModel([speak]), conditions):
            platform.says("go")
            await until(lambda: platform.server.texts(PERSON) == [" ".join(words)], 20)
    times = [at for at, _ in adapter.edits]
    assert len(times) >= 2
    assert all(later - earlier >= 0.25 for earlier, later in pairwise(times))
    assert adapter.edits[-1][1] == " ".join(words)


MENTION = {"type": "mention", "offset": 0, "length": 8}
LONG_ANSWER = "\n\n".join(
    f"Paragraph {number} has **bold words** and `code`: {'more ' * 30}" for number in range(60)
)


def streamed(text: str, pause: float = 0.0) -> Answer:
    """Returns an answer that is written word by word, with a pause of this many seconds after each
    word."""

    async def answer(_request: ModelRequest, emit: Emit) -> AssistantMessage:
        for word in re.findall(r"\s*\S+", text):
            emit(TextDelta(text=word))
            await anyio.sleep(pause)
        return AssistantMessage(text=text)

    return answer


def streaming_every(seconds: float) -> Conditions:
    streaming = StreamingSettings(edit_interval=seconds, buffer_threshold=1)
    return replace(QUIET, streaming=streaming)


async def test_edits_in_a_chat_keep_the_interval_whatever_the_token_rate(tmp_path: Path) -> None:
    text = "word " * 400 + "end"
    edits: list[float] = []

    class Timed(TelegramAdapter):
        async def edit(self, target: Target, ref: MessageRef, content: Content) -> None:
            edits.append(time.time())
            await super().edit(target, ref, content)

    async with telegram() as platform:
        server, adapter = platform.server, Timed("telegram", platform.config)
        server.add_chat(GROUP, "supergroup", title="Team")
        # The turns of two people in one group run at the same time.
        model = ScriptedModel([streamed(text, 0.002)] * 2)
        async with running(tmp_path, [adapter], model, streaming_every(0.15)):
            for user in (7, 8):
                server.says(GROUP, "@our_bot tell me", user=user, entities=[MENTION])
            await until(lambda: server.texts(GROUP) == [text] * 2, 20)
    assert len(edits) > 4
    assert all(later - one >= 0.15 for one, later in pairwise(edits))
    for message in server.messages.values():
        assert message.versions[-1] == text
        assert text not in message.versions[:-1]


async def test_a_long_answer_grows_over_several_messages_which_the_final_text_reuses(
    tmp_path: Path,
) -> None:
    async with telegram() as platform:
        server = platform.server
        seen: list[int] = []
        written = anyio.Event()

        async def answer(_request: ModelRequest, emit: Emit) -> AssistantMessage:
            emit(TextDelta(text=LONG_ANSWER))
            await until(lambda: len(server.messages) == 3, 20)
            seen.extend(id for _, id in server.messages)
            written.set()
            return AssistantMessage(text=LONG_ANSWER)

        async with running(
            tmp_path, [platform.adapter], ScriptedModel([answer]), streaming_every(0.02)
        ):
            platform.says("tell me everything")
            await written.wait()
            await until(lambda: "Paragraph 59" in server.texts(PERSON)[-1], 20)
            await until(lambda: server.texts(PERSON)[-1].endswith("more"), 20)
    assert [id for _, id in server.messages] == seen
    shown = "".join("".join(server.texts(PERSON)).split())
    assert shown == "".join(LONG_ANSWER.replace("*", "").replace("`", "").split())


async def test_a_text_that_telegram_can_not_read_is_sent_without_formatting(
    tmp_path: Path,
) -> None:
    class Broken(TelegramAdapter):
        """An adapter whose dialect has a defect."""

        @staticmethod
        def render(tree: Document) -> str:
            return TelegramAdapter.render(tree).replace("<b>", "<bold>").replace("</b>", "</bold>")

    async with telegram() as platform:
        server = platform.server
        adapter = Broken("telegram", platform.config)
        model = ScriptedModel([says("Some **bold** words & more")])
        async with running(tmp_path, [adapter], model):
            platform.says("hi")
            await until(lambda: server.texts(PERSON) == ["Some bold words & more"], 20)
    (message,) = server.messages.values()
    assert message.source == "Some bold words & more"


class EchoModel:
    """A model that answers every message with the text of the message."""

    async def complete(self, request: ModelRequest, emit: Emit) -> AssistantMessage:
        asked = request.messages[-1]
        assert isinstance(asked, UserMessage)
        text = f"the answer to {asked.text}"
        for word in text.split():
            emit(TextDelta(text=f"{word} "))
            await anyio.lowlevel.checkpoint()
        return AssistantMessage(text=text)


@pytest.mark.slow
async def test_no_answer_is_lost_repeated_or_out_of_order_after_failures_and_restarts(
    tmp_path: Path,
) -> None:
    chats, count = (7, 8, 9), 4
    failures = (
        ScriptedFailure(),
        ScriptedFailure(done=True),
        ScriptedFailure(status=502),
        ScriptedFailure(status=429, description="Too Many Requests", retry_after=1),
    )
    async with telegram() as platform:
        server = platform.server
        for chat in chats:
            server.add_chat(chat)
        for number in range(count):
            async with running(tmp_path, [platform.adapter], EchoModel()):
                await until(lambda: platform.bot.polls)
                server.failures = [failures[number]] * 3
                for chat in chats:
                    server.says(chat, f"message {number}", user=chat)
                await until(lambda: not server.failures, 30)
        expected = [f"the answer to message {number}" for number in range(count)]
        async with running(tmp_path, [platform.adapter], EchoModel()):
            for chat in chats:
                await until(lambda chat=chat: answers(server, chat) == expected, 60)  # type: ignore[misc]


def answers(server: BotApiServer, chat: int) -> list[str]:
    """Returns the messages in a chat that are complete answers."""
    return [text for text in server.texts(chat) if re.fullmatch(r"the answer to message \d", text)]
