"""Previews keep the permitted pace and end with the final text. An error of a preview does not
delay the answer."""

import time
from itertools import pairwise
from pathlib import Path

import anyio
from msgspec.structs import replace

from hermes.control.sending import LEFT_OVER
from hermes.settings.sections import StreamingSettings
from hermes.streaming.edits import PLACEHOLDER
from hermes.testing.platforms import ChatServer, EditingAdapter, PlainAdapter, RichAdapter, failing
from hermes.testing.running import QUIET, Conditions, TroubledStore, held, running, until
from hermes.testing.scripted import Answer, ScriptedModel, calls, says
from hermes.types.errors import Disconnected, RateLimited, Rejected, StoreUnavailable
from hermes.types.events import SegmentEnded, TextDelta
from hermes.types.identity import Target
from hermes.types.messages import AssistantMessage, Content
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit


def paced(interval: float, **settings: str) -> Conditions:
    streaming = StreamingSettings(edit_interval=interval, buffer_threshold=1)
    if settings.get("first") == "placeholder":
        streaming = replace(streaming, first="placeholder")
    return replace(QUIET, streaming=streaming)


def speaks(server: ChatServer, words: list[str]) -> Answer:
    """Returns an answer that emits one word at a time. After each word except the first, the answer
    waits until the platform gets another call."""

    async def answer(_request: ModelRequest, emit: Emit) -> AssistantMessage:
        for number, word in enumerate(words):
            shown = len(server.calls)
            emit(TextDelta(text=f"{word} "))
            if number:
                await until(lambda before=shown: len(server.calls) > before)  # type: ignore[misc]
        emit(SegmentEnded())
        return AssistantMessage(text=" ".join(words))

    return answer


async def test_the_answer_grows_at_the_permitted_pace_and_is_complete_at_the_end(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    words = ["alpha", "beta", "gamma", "delta", "epsilon"]
    model = ScriptedModel([speaks(server, words)])
    async with running(tmp_path, [EditingAdapter(server)], model, paced(0.1)):
        server.says("a")
        await until(lambda: " ".join(words) in server.texts())
    (shown,) = server.messages.values()
    assert len(shown.versions) >= 4
    assert shown.text == " ".join(words)
    assert shown.text not in shown.versions[:-1]
    times = [at for at, _, _ in server.calls[:-1]]
    assert all(later - earlier >= 0.09 for earlier, later in pairwise(times))


async def test_without_streaming_the_answer_is_sent_in_one_piece(tmp_path: Path) -> None:
    server = ChatServer()
    streaming = StreamingSettings(enabled=False, edit_interval=0.0, buffer_threshold=1)
    early: list[str] = []

    async def answer(_request: ModelRequest, emit: Emit) -> AssistantMessage:
        emit(TextDelta(text="alpha beta "))
        # The test waits for three typing indicators. If previews were not disabled, a preview would
        # be sent in this time.
        typed = len(server.typed)
        await until(lambda: len(server.typed) >= typed + 3)
        early.extend(server.texts())
        emit(TextDelta(text="gamma"))
        emit(SegmentEnded())
        return AssistantMessage(text="alpha beta gamma")

    model = ScriptedModel([answer])
    async with running(tmp_path, [RichAdapter(server)], model, replace(QUIET, streaming=streaming)):
        server.says("a")
        await until(lambda: "alpha beta gamma" in server.texts())
    assert early == []


async def test_a_placeholder_is_sent_first_if_it_is_configured(tmp_path: Path) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, says("hello"))])
    conditions = paced(0.02, first="placeholder")
    async with running(tmp_path, [EditingAdapter(server)], model, conditions):
        server.says("a")
        await until(lambda: server.texts() == [PLACEHOLDER])
        go.set()
        await until(lambda: server.texts() == ["hello"])


async def test_the_text_of_earlier_steps_stays_above_the_answer(tmp_path: Path) -> None:
    server, go = ChatServer(), anyio.Event()
    look = calls(("slow", {"seconds": 0}), text="Let me look.")
    model = ScriptedModel([look, held(go, says("Found it."))])
    async with running(tmp_path, [EditingAdapter(server)], model, paced(0.02)):
        server.says("a")
        await until(lambda: any("Let me" in text for text in server.texts()))
        go.set()
        await until(lambda: server.texts() == ["Let me look.\n\nFound it."])


async def test_a_preview_continues_in_the_same_message_after_a_restart(tmp_path: Path) -> None:
    server = ChatServer()
    server.says("a")
    first = ScriptedModel([held(anyio.Event(), says("never"), said="one two three ")])
    async with running(tmp_path, [EditingAdapter(server)], first, paced(0.02)):
        await until(lambda: any("one" in text for text in server.texts()))
    go = anyio.Event()
    second = ScriptedModel([held(go, says("done at last"), said="one two three ")])
    async with running(tmp_path, [EditingAdapter(server)], second, paced(0.02)):
        await until(lambda: any("two three" in text for text in server.texts()))
        go.set()
        await until(lambda: server.texts() == ["done at last"])
    assert len(server.messages) == 1


async def test_a_placeholder_is_not_placed_again_after_a_restart(tmp_path: Path) -> None:
    server, conditions = ChatServer(), paced(0.02, first="placeholder")
    server.says("a")
    never = ScriptedModel([held(anyio.Event(), says("never"))])
    async with running(tmp_path, [EditingAdapter(server)], never, conditions):
        await until(server.texts)
    go = anyio.Event()
    model = ScriptedModel([held(go, says("done"), said="well well ")])
    async with running(tmp_path, [EditingAdapter(server)], model, conditions):
        await until(lambda: "well" in server.texts()[0])
        go.set()
        await until(lambda: server.texts() == ["done"])


async def test_the_answer_arrives_even_if_the_preview_fails(tmp_path: Path) -> None:
    for number, failure in enumerate(
        (Disconnected("cut"), RateLimited("slow", retry_after=0.1), ValueError("a fault of ours"))
    ):
        server, go = ChatServer(), anyio.Event()
        server.trouble = failing(failure)
        model = ScriptedModel([held(go, says("the whole answer"), said="the whole answer is ")])
        home = tmp_path / str(number)
        async with running(home, [EditingAdapter(server)], model, paced(0.02)):
            server.says("a")
            await until(lambda seen=server: seen.calls)  # type: ignore[misc]
            go.set()
            await until(lambda seen=server: seen.texts() == ["the whole answer"])  # type: ignore[misc]


async def test_a_full_disk_affects_the_preview_but_not_the_answer(tmp_path: Path) -> None:
    server, asked = ChatServer(), []

    async def before(name: str) -> None:
        if name == "open_of":
            asked.append(name)
            raise StoreUnavailable("the disk is full")

    troubled = replace(QUIET, wrap_store=lambda store: TroubledStore(store, before))
    model = ScriptedModel([says("the whole answer")])
    async with running(tmp_path, [EditingAdapter(server)], model, troubled):
        server.says("a")
        await until(lambda: server.texts() == ["the whole answer"])
    assert asked


async def test_a_stopped_turn_leaves_one_message_that_says_so(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([held(anyio.Event(), says("never"), said="As I was saying ")])
    async with running(tmp_path, [EditingAdapter(server)], model, paced(0.02)):
        server.says("a")
        await until(server.texts)
        server.says("/stop")
        await until(lambda: server.texts()[0] == "As I was saying\n\n(stopped: by you)")
        await until(lambda: server.texts()[1:] == ["Stopped."])


async def test_typing_is_shown_while_the_turn_runs_and_not_after_it(tmp_path: Path) -> None:
    server, go = ChatServer(), anyio.Event()
    model = ScriptedModel([held(go, says("done"))])
    async with running(tmp_path, [RichAdapter(server)], model) as gateway:
        server.says("a")
        await until(lambda: len(server.typed) >= 3)
        assert server.texts() == []
        go.set()
        await until(lambda: server.texts() == ["done"])
        await until(lambda: not gateway.busy)
        typed = len(server.typed)
        server.says("/status")
        await until(lambda: len(server.texts()) == 2)
        await anyio.sleep(3 * RichAdapter.limits.typing_interval)
        assert len(server.typed) == typed
    times = [at for at, _ in server.typed]
    interval = RichAdapter.limits.typing_interval
    assert all(later - earlier >= 0.9 * interval for earlier, later in pairwise(times))


async def test_typing_stops_while_the_turn_waits_for_a_person(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(("ask", {"question": "Red or blue?"})), says("done")])
    async with running(tmp_path, [RichAdapter(server)], model) as gateway:
        server.says("a")
        await until(lambda: server.texts() and "Red or blue?" in server.texts()[0])
        await until(lambda: not gateway.busy)
        typed = len(server.typed)
        await anyio.sleep(3 * RichAdapter.limits.typing_interval)
        assert len(server.typed) == typed


async def test_an_error_of_the_typing_indicator_has_no_other_effect(tmp_path: Path) -> None:
    for number, failure in enumerate(
        (Disconnected("cut"), RateLimited("slow", retry_after=0.1), ValueError("a fault of ours"))
    ):
        server, go = ChatServer(), anyio.Event()
        failures = failing(failure)
        server.trouble = lambda kind, chat, once=failures: (  # type: ignore[misc]
            once(kind, chat) if kind == "typing" else None
        )
        model = ScriptedModel([held(go, says("the whole answer"), said="the whole answer is ")])
        home = tmp_path / str(number)
        async with running(home, [RichAdapter(server)], model, paced(0.02)):
            server.says("a")
            await until(lambda seen=server: any("whole" in text for text in seen.texts()))  # type: ignore[misc]
            go.set()
            await until(lambda seen=server: seen.texts() == ["the whole answer"])  # type: ignore[misc]


async def test_no_typing_indicator_is_sent_during_a_pause_of_the_platform(tmp_path: Path) -> None:
    server, go = ChatServer(), anyio.Event()
    server.trouble = failing(RateLimited("slow down", retry_after=0.4))
    began = time.time()
    async with running(tmp_path, [RichAdapter(server)], ScriptedModel([held(go, says("done"))])):
        server.says("a")
        await until(lambda: server.typed)
        assert server.typed[0][0] - began >= 0.4


async def test_a_preview_that_was_being_sent_at_a_crash_is_found_by_its_key(
    tmp_path: Path,
) -> None:
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
    first = ScriptedModel([held(anyio.Event(), says("never"), said="one two three ")])
    with anyio.move_on_after(10):
        async with running(tmp_path, [EditingAdapter(server)], first, paced(0.02)):
            await lost.wait()
    async with running(
        tmp_path, [EditingAdapter(server)], ScriptedModel([says("one two three four")]), paced(0.02)
    ):
        await until(lambda: server.texts() == ["one two three four"])
    assert len(server.messages) == 1
    assert len(set(server.keys)) == 1


async def test_an_unfinished_preview_is_rendered_in_the_dialect_of_the_platform(
    tmp_path: Path,
) -> None:
    server, go = ChatServer(), anyio.Event()
    said = "Look:\n\n```py\nprint(1)\nprint("
    model = ScriptedModel([held(go, says(f"{said}2)\n```"), said=said)])
    async with running(tmp_path, [EditingAdapter(server)], model, paced(0.02)):
        server.says("a")
        await until(lambda: "Look:\n\n```py\nprint(1)\nprint(\n```\n\n▉" in server.texts())
        go.set()
        await until(lambda: server.texts() == [f"{said}2)\n```"])


class ReactingAdapter(PlainAdapter):
    """An adapter for a platform without edits, which refuses all reactions."""

    def __init__(self, server: ChatServer) -> None:
        super().__init__(server)
        self.reacted: list[tuple[Target, str]] = []
        self.noticed = anyio.Event()

    async def react(self, target: Target, message_id: str) -> None:
        self.reacted.append((target, message_id))
        self.noticed.set()
        raise Rejected("reactions are off in this chat")


async def test_a_reaction_that_is_refused_does_not_keep_the_answer_back(tmp_path: Path) -> None:
    server = ChatServer()
    adapter = ReactingAdapter(server)
    model = ScriptedModel([held(adapter.noticed, says("hello"))])
    async with running(tmp_path, [adapter], model):
        number = server.says("hi")
        await until(lambda: server.texts() == ["hello"])
    assert adapter.reacted == [(Target(account="plain", chat_id="1"), str(number))]


LONG = " ".join(f"word{number}" for number in range(1000))


async def test_a_preview_that_outgrows_a_message_continues_in_the_next_one(tmp_path: Path) -> None:
    server, finished = ChatServer(), anyio.Event()
    model = ScriptedModel([held(finished, says(LONG), said=f"{LONG} ")])
    async with running(tmp_path, [EditingAdapter(server)], model):
        server.says("a")
        await until(lambda: any("word999" in text for text in server.texts()))
        shown = list(server.messages)
        finished.set()
        await until(lambda: server.texts()[-1].endswith("word999"))
    assert list(server.messages) == shown
    assert len(shown) == 2
    assert " ".join(server.texts()).split() == LONG.split()


async def test_a_shorter_answer_after_a_restart_replaces_the_whole_preview(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([held(anyio.Event(), says("never"), said=f"{LONG} ")])
    async with running(tmp_path, [EditingAdapter(server)], model):
        server.says("a")
        await until(lambda: any("word999" in text for text in server.texts()))
    async with running(tmp_path, [EditingAdapter(server)], ScriptedModel([says("short answer")])):
        await until(lambda: server.texts() == ["short answer", LEFT_OVER])
