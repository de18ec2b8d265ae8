"""A delivery is sent as one or more rendered messages with buttons and files. Each message has an
idempotency key."""

import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control.rate_gate import RateGate
from hermes.control.sending import LEFT_OVER, REPEAT, Sending
from hermes.state import deliveries
from hermes.state.codec import decode_placed
from hermes.streaming.edits import PLACEHOLDER
from hermes.testing.platforms import (
    LIMIT,
    ChatServer,
    EditingAdapter,
    KeyedAdapter,
    PlainAdapter,
    RichAdapter,
    failing,
)
from hermes.testing.rows import NOW
from hermes.testing.running import rows, running, until
from hermes.testing.scripted import ScriptedModel, calls, says
from hermes.testing.stores import open_test_store
from hermes.types.delivery import Delivery, Placed
from hermes.types.errors import (
    Disconnected,
    FormatRefused,
    RateLimited,
    Rejected,
    TargetGone,
)
from hermes.types.identity import Target
from hermes.types.messages import Attachment, Choices, Content, MessageRef
from hermes.types.platforms import PlatformLimits
from hermes.types.store import Store

CHAT = Target(account="chat", chat_id="1")
TEA = Choices(question="q1", prompt="Tea **now**?", labels=("yes", "no"), text="Tea? Reply yes.")
NAME = Choices(question="q2", prompt="Your name?", labels=(), text="Your name? Reply with it.")
FILES = tuple(Attachment(kind="file", path=f"/tmp/{name}", name=name) for name in ("a", "b"))
LONG = " ".join(f"word{number}" for number in range(900))


async def send(
    folder: Path, adapter: PlainAdapter, content: Content, *attempts: type[Exception]
) -> Delivery:
    """Sends a delivery several times: first one attempt for each item of `attempts`, which must
    fail with this error, and then a last attempt, which must succeed."""
    async with open_test_store(folder) as store:
        id = await store.run(deliveries.owe, CHAT, content, "main", None, NOW)
        delivery = Delivery(id=id, target=CHAT, state="sending", content=content)
        for error in attempts:
            sending = Sending(store, RateGate(), adapter, delivery)
            with pytest.raises(error):
                await sending.run()
            doubtful = error is Disconnected
            delivery = replace(delivery, placed=sending.placed, doubtful=doubtful)
        return await final_attempt(store, adapter, delivery)


async def final_attempt(store: Store, adapter: PlainAdapter, delivery: Delivery) -> Delivery:
    sending = Sending(store, RateGate(), adapter, delivery)
    await sending.run()
    return replace(delivery, placed=sending.placed)


class Lossy(ChatServer):
    """A platform that shows every message, but whose replies to some calls are lost."""

    def __init__(self, *losses: int, deduplicates: bool = False) -> None:
        super().__init__(deduplicates=deduplicates)
        self._losses = set(losses)
        """The numbers of the calls of `send` whose replies are lost."""

    async def send(self, chat: str, content: Content, key: str) -> str:
        id = await super().send(chat, content, key)
        if len(self.keys) in self._losses:
            raise Disconnected("the reply was lost")
        return id


async def test_the_text_is_rendered_and_the_delivery_keeps_its_markdown(tmp_path: Path) -> None:
    server = ChatServer()
    sent = await send(tmp_path, PlainAdapter(server), Content(text="**bold** [l](http://x.y)"))
    assert server.texts() == ["bold l (http://x.y)"]
    assert sent.content.text == "**bold** [l](http://x.y)"


async def test_a_message_that_is_sent_again_has_the_same_key(tmp_path: Path) -> None:
    server = Lossy(1)
    sent = await send(tmp_path, PlainAdapter(server), Content(text="hello"), Disconnected)
    assert server.keys == [sent.key(0, "send")] * 2
    assert server.texts() == ["hello", REPEAT + "hello"]


@pytest.mark.parametrize("text", ["hello", "x" * LIMIT])
async def test_a_platform_that_deduplicates_by_key_shows_one_message(
    tmp_path: Path, text: str
) -> None:
    server = Lossy(1, deduplicates=True)
    await send(tmp_path, KeyedAdapter(server), Content(text=text), Disconnected)
    assert len(server.keys) == 2
    assert server.texts() == [text]


async def test_a_file_arrives_once_if_the_platform_deduplicates_by_key(tmp_path: Path) -> None:
    server = Lossy(2, 4, deduplicates=True)
    content = Content(text="Two files:", attachments=FILES)
    await send(tmp_path, KeyedAdapter(server), content, Disconnected, Disconnected)
    sent = [file for one in server.messages.values() for file in one.content.attachments]
    assert sent == list(FILES)
    assert server.texts() == ["Two files:", "", ""]


async def test_on_other_platforms_a_file_that_may_be_a_repeat_is_marked(tmp_path: Path) -> None:
    server = Lossy(2)
    content = Content(text="A file:", attachments=FILES[:1])
    await send(tmp_path, RichAdapter(server), content, Disconnected)
    assert server.texts() == ["A file:", "", REPEAT.strip()]


async def test_a_platform_without_files_shows_the_names_of_the_files(tmp_path: Path) -> None:
    server = ChatServer()
    await send(tmp_path, PlainAdapter(server), Content(text="Here.", attachments=FILES))
    assert server.texts() == ["Here.\n\n(a can't be sent here.)\n\n(b can't be sent here.)"]


async def test_a_long_repeat_is_announced_in_a_message_of_its_own(tmp_path: Path) -> None:
    server = Lossy(1)
    text = "x" * LIMIT
    sent = await send(tmp_path, PlainAdapter(server), Content(text=text), Disconnected)
    assert server.texts() == [text, REPEAT.strip(), text]
    assert server.keys[1:] == [sent.key(0, "repeat"), sent.key(0, "send")]


async def test_a_question_has_buttons_if_the_platform_supports_buttons(tmp_path: Path) -> None:
    server = ChatServer()
    content = Content(text="Well.", choices=(TEA, NAME))
    await send(tmp_path, RichAdapter(server), content)
    assert server.texts() == ["Well.\n\nYour name? Reply with it.", "Tea **now**?"]
    shown = [one.content.choices for one in server.messages.values()]
    assert shown == [(), (TEA,)]


@pytest.mark.parametrize("adapter", [PlainAdapter, EditingAdapter])
async def test_a_question_is_text_if_the_platform_has_no_buttons(
    tmp_path: Path, adapter: type[PlainAdapter]
) -> None:
    server = ChatServer()
    await send(tmp_path, adapter(server), Content(text="Well.", choices=(TEA, NAME)))
    assert server.texts() == ["Well.\n\nTea? Reply yes.\n\nYour name? Reply with it."]


async def test_a_part_that_was_edited_is_not_edited_or_sent_again(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = failing(None, None, RateLimited("slow down", 1.0))
    content = Content(text=LONG, choices=(TEA,))
    sent = await send(tmp_path, RichAdapter(server), content, RateLimited)
    assert Counter(kind for _, kind, _ in server.calls) == {"send": 4, "edit": 3}
    assert " ".join(server.texts()[:2]).split() == LONG.split()
    assert server.texts()[2:] == ["Tea **now**?"]
    assert all(one.final for one in sent.placed)


@pytest.mark.parametrize(("text", "threaded"), [("short", False), (LONG, True)])
async def test_a_long_text_is_split_outside_of_the_event_loop(
    tmp_path: Path, text: str, threaded: bool
) -> None:
    measured: set[int] = set()

    class Measuring(PlainAdapter):
        def measure(self, text: str) -> int:
            measured.add(threading.get_ident())
            return super().measure(text)

    server = ChatServer()
    await send(tmp_path, Measuring(server), Content(text=text))
    assert " ".join(server.texts()).split() == text.split()
    assert (threading.get_ident() not in measured) == threaded


async def test_a_deleted_message_is_replaced_under_a_new_key(tmp_path: Path) -> None:
    server = ChatServer(deduplicates=True)
    gone = failing(Rejected("there is no such message"))
    server.trouble = lambda kind, chat: gone(kind, chat) if kind == "edit" else None
    sent = await send(tmp_path, EditingAdapter(server), Content(text="the whole answer"))
    assert server.keys == [sent.key(0, "place"), sent.key(0, "replace")]
    assert server.texts() == ["the whole …", "the whole answer"]


async def test_after_a_rejected_edit_the_answer_is_sent_as_a_new_message(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    server.trouble = failing(Disconnected("cut"), None, Rejected("there is no such message"))
    await send(tmp_path, EditingAdapter(server), Content(text="the whole answer"), Disconnected)
    assert server.texts() == ["the whole …", "the whole answer"]


async def test_a_placeholder_is_sent_if_the_partial_text_would_not_fit(tmp_path: Path) -> None:
    class Bytes(EditingAdapter):
        def measure(self, text: str) -> int:
            return len(text.encode())

    server = ChatServer()
    text = "x" * (LIMIT - 2) + " y"
    await send(tmp_path, Bytes(server), Content(text=text))
    (shown,) = server.messages.values()
    assert shown.versions == (PLACEHOLDER, text)


async def test_a_preview_with_the_final_text_needs_no_edit(tmp_path: Path) -> None:
    server = ChatServer()
    async with open_test_store(tmp_path) as store:
        id = await store.run(deliveries.owe, CHAT, Content(text="done"), "main", None, NOW)
        ref = await server.send("1", Content(text="done"), "preview")
        placed = (Placed(ref=MessageRef(id=ref), text="done"),)
        content = Content(text="done")
        delivery = Delivery(id=id, target=CHAT, state="sending", content=content, placed=placed)
        await final_attempt(store, EditingAdapter(server), delivery)
    assert [kind for _, kind, _ in server.calls] == ["send"]


class Picky(EditingAdapter):
    """An adapter of a platform that refuses every message with bold text."""

    limits = PlatformLimits(text=40, attachments=True)
    error: type[Rejected] = FormatRefused

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        self._check(content)
        return await super().send(target, content, key)

    async def edit(self, target: Target, ref: MessageRef, content: Content) -> None:
        self._check(content)
        await super().edit(target, ref, content)

    def _check(self, content: Content) -> None:
        if "**" in content.text and not content.plain:
            raise self.error("can't parse entities")
        assert len(content.text) <= 40


class PickyWithoutEdits(PlainAdapter):
    limits = Picky.limits
    render = EditingAdapter.render

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        if "**" in content.text and not content.plain:
            raise FormatRefused("can't parse entities")
        return await super().send(target, content, key)


# The platform refuses the second message, because it has bold text. So this message is sent as
# plain text.
FORMATTED = (
    "The first message is plain text.\n\n**bold** words and 日本語の文です。\n\nThe end of it all."
)
UNFORMATTED = [
    "The first message is plain text.",
    "bold words and 日本語の文です。",
    "The end of it all.",
]


@pytest.mark.parametrize("adapter", [Picky, PickyWithoutEdits])
async def test_a_text_that_the_platform_can_not_read_is_sent_without_formatting(
    tmp_path: Path, adapter: type[PlainAdapter]
) -> None:
    server = ChatServer()
    sent = await send(tmp_path, adapter(server), Content(text=FORMATTED))
    assert server.texts() == UNFORMATTED
    assert [one.plain for one in sent.placed] == [False, True, False]


@pytest.mark.parametrize(
    ("adapter", "killed"), [(Picky, False), (Picky, True), (PickyWithoutEdits, False)]
)
@pytest.mark.parametrize("before", range(1, 11))
async def test_an_interrupted_delivery_without_formatting_loses_and_repeats_nothing(
    tmp_path: Path, adapter: type[PlainAdapter], killed: bool, before: int
) -> None:
    server = ChatServer()
    calls = 0

    def limited(kind: str, chat: str) -> Exception | None:
        nonlocal calls
        calls += 1
        return RateLimited("slow down", 1.0) if calls == before else None

    server.trouble = limited
    # With formatting, the second part fits into one message. As plain text, its length is measured
    # in bytes, so it needs several messages.
    text = f"{'first ' * 6}\n\n**{'日本語' * 11}**\n\n{'last ' * 7}"
    async with open_test_store(tmp_path) as store:
        id = await store.run(deliveries.owe, CHAT, Content(text=text), "main", None, NOW)
        delivery = Delivery(id=id, target=CHAT, state="sending", content=Content(text=text))
        await rows(store, "update deliveries set state = 'sending'")
        sending = Sending(store, RateGate(), adapter(server), delivery)
        with suppress(RateLimited):
            await sending.run()
        placed = sending.placed
        if killed:
            ((stored,),) = await rows(store, "select placed from deliveries")
            placed = decode_placed(stored)
        again = replace(delivery, placed=placed, doubtful=killed)
        await final_attempt(store, adapter(server), again)
    assert "".join("".join(server.texts()).split()) == "first" * 6 + "日本語" * 11 + "last" * 7
    assert len(server.texts()) == 5


async def test_a_text_that_is_refused_for_another_reason_is_also_tried_without_formatting(
    tmp_path: Path,
) -> None:
    class Strict(Picky):
        error = Rejected

    server = ChatServer()
    await send(tmp_path, Strict(server), Content(text="**bold** words"))
    assert server.texts()[-1] == "bold words"


async def test_a_refused_text_without_formatting_is_not_sent_again(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = lambda kind, chat: Rejected("not allowed")
    async with open_test_store(tmp_path) as store:
        delivery = Delivery(id="d", target=CHAT, state="sending", content=Content(text="words"))
        with pytest.raises(Rejected):
            await Sending(store, RateGate(), PlainAdapter(server), delivery).run()
    assert len(server.calls) == 1


async def test_a_message_to_a_chat_that_is_gone_is_not_tried_again(tmp_path: Path) -> None:
    server = ChatServer()
    server.trouble = lambda kind, chat: TargetGone("kicked")
    async with open_test_store(tmp_path) as store:
        content = Content(text="**bold**")
        delivery = Delivery(id="d", target=CHAT, state="sending", content=content)
        with pytest.raises(TargetGone):
            await Sending(store, RateGate(), EditingAdapter(server), delivery).run()
    assert len(server.calls) == 1


async def test_messages_of_a_preview_that_was_longer_than_the_answer_are_edited(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    async with open_test_store(tmp_path) as store:
        content = Content(text="short")
        id = await store.run(deliveries.owe, CHAT, content, "main", None, NOW)
        texts = ("an answer that was", "discarded", "and long")
        refs = [await server.send("1", Content(text=text), text) for text in texts]
        placed = tuple(
            Placed(ref=MessageRef(id=ref), text=text) for ref, text in zip(refs, texts, strict=True)
        )
        del server.messages["m3"]
        delivery = Delivery(id=id, target=CHAT, state="sending", content=content, placed=placed)
        await final_attempt(store, EditingAdapter(server), delivery)
    assert server.texts() == ["short", LEFT_OVER]


async def test_a_pressed_button_answers_the_question(tmp_path: Path) -> None:
    server = ChatServer()
    ask = calls(("ask", {"question": "Red or blue?", "choices": ["red", "blue"]}))
    model = ScriptedModel([ask, says("blue it is")])
    async with running(tmp_path, [RichAdapter(server)], model) as gateway:
        server.says("paint it")
        await until(lambda: server.texts() == ["Red or blue?"])
        (shown,) = server.messages.values()
        await until(lambda: server.messages["m1"].content.choices)
        (choices,) = server.messages["m1"].content.choices
        assert choices.labels == ("red", "blue")
        await until(lambda: not gateway.busy)
        server.presses(choices.question, "blue")
        await until(lambda: "blue it is" in server.texts())
        await until(lambda: not server.messages["m1"].content.choices)
    assert shown.id == "m1"
    assert server.texts()[0] == "Red or blue?\n\nAnswered by rich:7: blue"


async def test_the_deleted_message_of_a_closed_question_is_not_sent_again(tmp_path: Path) -> None:
    server = ChatServer()
    ask = calls(("ask", {"question": "Red or blue?", "choices": ["red", "blue"]}))
    model = ScriptedModel([ask, says("blue it is"), says("hello")])
    async with running(tmp_path, [RichAdapter(server)], model) as gateway:
        server.says("paint it")
        await until(lambda: server.messages and server.messages["m1"].content.choices)
        (choices,) = server.messages["m1"].content.choices
        await until(lambda: not gateway.busy)
        del server.messages["m1"]
        server.presses(choices.question, "blue")
        await until(lambda: "blue it is" in server.texts())
        server.says("hi")
        await until(lambda: "hello" in server.texts())
    assert server.texts() == ["blue it is", "hello"]


async def test_without_edits_the_message_of_a_closed_question_stays(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(("ask", {"question": "What colour?"})), says("blue it is")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("paint it")
        await until(server.texts)
        await until(lambda: not gateway.busy)
        (asked,) = server.texts()
        server.says("blue")
        await until(lambda: "blue it is" in server.texts())
    assert server.texts() == [asked, "blue it is"]


async def test_the_key_is_the_same_after_a_restart(tmp_path: Path) -> None:
    lost = anyio.Event()

    class Hanging(ChatServer):
        async def send(self, chat: str, content: Content, key: str) -> str:
            id = await super().send(chat, content, key)
            if not lost.is_set():
                lost.set()
                await anyio.sleep_forever()
            return id

    server = Hanging(deduplicates=True)
    server.says("a")
    async with running(tmp_path, [KeyedAdapter(server)], ScriptedModel([says("hello")])):
        await lost.wait()
    async with running(tmp_path, [KeyedAdapter(server)], ScriptedModel([])):
        await until(lambda: len(server.keys) == 2)
    assert len(set(server.keys)) == 1
    assert server.texts() == ["hello"]
