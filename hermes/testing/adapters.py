"""The contract of adapters for chat platforms, as a test class to inherit from.

class TestTelegram(AdapterContract):
    abilities = ("buttons", "typing")

    @asynccontextmanager
    async def platform(self) -> AsyncIterator[FakePlatform]: ...
"""

from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Literal, Protocol

import anyio
import pytest

from hermes.testing.running import until
from hermes.text.markdown import parse
from hermes.text.split import split
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.identity import Target
from hermes.types.messages import (
    Accepted,
    Attachment,
    Choices,
    Content,
    MessageEvent,
    Pressed,
    Receipt,
    Said,
)
from hermes.types.nodes import Paragraph, Text
from hermes.types.platforms import CanEdit, CanType, PlatformAdapter, Quality

SAMPLE = """\
# Heading *one*

A **bold** word, `code <&> here`, a [link](https://example.org/a_b) and ~~struck~~ text.
Signs: < > & * _ ~ ` [ ] ( ) # + - = | { } . ! \\\\ end.

> quoted words

1. first item
2. second item
   - nested item

```py
if a < b and c > d: print("code_line")
```

| left | right |
|------|-------|
| cell | other |
"""
"""Markdown with every kind of block."""
SAMPLE_WORDS = (
    *("Heading", "one", "bold", "word", "code", "here", "link", "struck", "text", "Signs", "end"),
    *("quoted", "words", "first", "item", "second", "nested", "code_line", "left", "right"),
    *("cell", "other"),
)


class FakePlatform(Protocol):
    """A fake server of the platform, and the adapter that talks to it."""

    @property
    def adapter(self) -> PlatformAdapter: ...
    @property
    def target(self) -> Target:
        """A chat that exists on the fake platform."""
        ...

    @property
    def quality(self) -> Quality:
        """The quality level that the platform's manifest declares."""
        ...

    @property
    def start(self) -> str | None:
        """A cursor that is older than the first message of the test, so that the adapter receives
        all messages. None if the adapter receives all messages even without a cursor."""
        ...

    @property
    def echoed(self) -> int:
        """Number of messages of the bot itself that the server has sent back to the adapter as
        updates. Real platforms do this too."""
        ...

    @property
    def connections(self) -> int:
        """Number of open connections from the adapter to the server."""
        ...

    @property
    def typed(self) -> int:
        """Number of times that the adapter has shown the typing indicator."""
        ...

    def says(self, text: str) -> None:
        """Lets a person write in the chat."""
        ...

    def presses(self, question: str, label: str) -> None:
        """Lets a person press a button under one of the gateway's questions."""
        ...

    def shown(self) -> list[str]:
        """Returns the rendered texts of our messages in the chat, as the server stores them."""
        ...

    def files(self) -> list[str]:
        """Returns the names of the files that we have sent to the chat."""
        ...

    def fail(self, error: HermesError) -> None:
        """Makes the next call of the adapter fail. The fake server reports `error` in the same way
        as the real platform."""
        ...


class MemoryCursor:
    """A cursor that is kept only in memory."""

    def __init__(self, value: str | None = None) -> None:
        self.value = value

    async def save(self, value: str) -> None:
        self.value = value


class Listener:
    """Accepts messages, or refuses them while `refusing` is set."""

    def __init__(self) -> None:
        self.heard: list[MessageEvent] = []
        self.refusing = False

    async def accept(self, event: MessageEvent) -> Receipt:
        if self.refusing:
            raise Disconnected("the store can't be reached")
        self.heard.append(event)
        return Accepted(id=event.dedupe_key)

    def texts(self) -> list[str]:
        return [event.body.text for event in self.heard if isinstance(event.body, Said)]


Ability = Literal["attachments", "buttons", "deduplication", "typing"]

ABILITY_TESTS: Mapping[str, Ability] = {
    "test_a_pressed_button_is_reported": "buttons",
    "test_a_message_with_a_known_key_is_not_shown_twice": "deduplication",
    "test_a_file_is_sent": "attachments",
    "test_typing_is_shown": "typing",
}
"""Maps the name of a test to the ability that the test needs."""


def abilities_of(adapter: PlatformAdapter) -> set[Ability]:
    """Returns the abilities of the platform, according to its adapter."""
    limits = adapter.limits
    able: dict[Ability, bool] = {
        "attachments": limits.attachments,
        "buttons": limits.buttons > 0,
        "deduplication": limits.deduplicates,
        "typing": isinstance(adapter, CanType),
    }
    return {ability for ability, has in able.items() if has}


class AdapterContract:
    abilities: tuple[Ability, ...] = ()
    """The abilities of the platform. pytest leaves out the tests in `ABILITY_TESTS` that need an
    ability which is not listed here."""
    patience = 5.0
    """Seconds that a test waits for an action of the adapter."""

    def __init_subclass__(cls) -> None:
        for name, ability in ABILITY_TESTS.items():
            if ability not in cls.abilities:
                setattr(cls, name, None)

    async def test_every_ability_of_the_adapter_is_tested(self) -> None:
        async with self.platform() as platform:
            assert abilities_of(platform.adapter) == set(self.abilities)

    def platform(self) -> AbstractAsyncContextManager[FakePlatform]:
        """Yields a new fake server, and the adapter that is connected to it."""
        raise NotImplementedError

    async def test_messages_are_accepted_once_and_in_order(self) -> None:
        async with self.platform() as platform, listening(platform) as listener:
            for word in ("one", "two", "three"):
                platform.says(word)
            await until(lambda: len(listener.heard) == 3, self.patience)
        assert listener.texts() == ["one", "two", "three"]
        assert len({event.dedupe_key for event in listener.heard}) == 3

    async def test_only_accepted_messages_are_acknowledged(self) -> None:
        async with self.platform() as platform:
            first, second, cursor = Listener(), Listener(), MemoryCursor(platform.start)
            first.refusing = True
            platform.says("hello")
            with pytest.raises(Disconnected):
                await platform.adapter.run(first.accept, lambda: None, cursor)
            async with listening(platform, second, cursor):
                await until(lambda: second.heard, self.patience)
        assert second.texts() == ["hello"]

    async def test_a_message_has_the_same_key_after_a_restart(self) -> None:
        async with self.platform() as platform:
            platform.says("hello")
            keys: list[str] = []

            async def note(event: MessageEvent) -> Receipt:
                keys.append(event.dedupe_key)
                raise Disconnected("killed before the commit")

            for _ in range(2):
                cursor = MemoryCursor(platform.start)
                with pytest.raises(Disconnected):
                    await platform.adapter.run(note, lambda: None, cursor)
        assert len(keys) == 2
        assert len(set(keys)) == 1

    async def test_a_new_connection_continues_at_the_cursor(self) -> None:
        async with self.platform() as platform:
            cursor = MemoryCursor(platform.start)
            async with listening(platform, cursor=cursor) as before:
                platform.says("before")
                await until(lambda: before.heard, self.patience)
            platform.says("while nobody listened")
            async with listening(platform, cursor=cursor) as after:
                platform.says("after")
                await until(lambda: "after" in after.texts(), self.patience)
        new = [text for text in after.texts() if text != "before"]
        assert new == ["while nobody listened", "after"]

    async def test_an_adapter_reports_that_it_is_connected_and_disconnects_when_cancelled(
        self,
    ) -> None:
        async with self.platform() as platform:
            ready = anyio.Event()
            run = platform.adapter.run
            with anyio.fail_after(5):
                async with anyio.create_task_group() as group:
                    group.start_soon(run, Listener().accept, ready.set, MemoryCursor())
                    await ready.wait()
                    assert platform.connections == 1
                    group.cancel_scope.cancel()
            await until(lambda: platform.connections == 0, self.patience)

    async def test_an_adapter_reports_again_that_it_is_connected_when_the_platform_answers(
        self,
    ) -> None:
        # If `ready` is not called again, the gateway considers the connection dead and restarts the
        # adapter.
        async with self.platform() as platform:
            listener, reports = Listener(), 0

            def ready() -> None:
                nonlocal reports
                reports += 1

            async with anyio.create_task_group() as group:
                group.start_soon(platform.adapter.run, listener.accept, ready, MemoryCursor())
                await until(lambda: reports, self.patience)
                before = reports
                platform.says("hello")
                await until(lambda: listener.heard and reports > before, self.patience)
                group.cancel_scope.cancel()

    async def test_the_adapter_ignores_its_own_messages(self) -> None:
        async with self.platform() as platform, listening(platform) as listener:
            await platform.adapter.send(platform.target, self._plain(platform, "from us"), "k1")
            await until(lambda: platform.echoed, self.patience)
            platform.says("from them")
            await until(lambda: "from them" in listener.texts(), self.patience)
        assert listener.texts() == ["from them"]

    async def test_a_pressed_button_is_reported(self) -> None:
        async with self.platform() as platform, listening(platform) as listener:
            choices = Choices(question="q1", prompt="Tea?", labels=("yes", "no"), text="Tea?")
            content = Content(text="Tea?", choices=(choices,))
            await platform.adapter.send(platform.target, content, "k1")
            platform.presses("q1", "no")
            await until(lambda: listener.heard, self.patience)
        (event,) = listener.heard
        assert isinstance(event.body, Pressed)
        assert (event.body.question, event.body.choice) == ("q1", "no")

    @pytest.mark.parametrize("letter", ["x", "é", "😀", "&"])
    async def test_a_text_at_the_limit_arrives_whole_and_a_longer_one_is_rejected(
        self, letter: str
    ) -> None:
        async with self.platform() as platform:
            adapter = platform.adapter

            def text(count: int) -> str:
                return adapter.render((Paragraph(children=(Text(text=letter * count),)),))

            limit = adapter.limits.text
            counts = range(1, limit + 2)
            count = bisect_right(counts, limit, key=lambda one: adapter.measure(text(one)))
            await adapter.send(platform.target, Content(text=text(count)), "k1")
            with pytest.raises(Rejected):
                await adapter.send(platform.target, Content(text=text(count + 1)), "k2")
            assert platform.shown() == [text(count)]

    async def test_a_text_without_markup_is_shown_unchanged(self) -> None:
        text = "1 < 2 & <b>*not* `bold`</b> [x](y) \\_ <unknown>"
        async with self.platform() as platform:
            adapter, target = platform.adapter, platform.target
            ref = await adapter.send(target, Content(text=text, plain=True), "k")
            if isinstance(adapter, CanEdit):
                await adapter.edit(target, ref, Content(text=f"{text} again", plain=True))
                text += " again"
            # The fake server stores the text as plain text, or in its own markup language, as some
            # real servers do. So plain text and rendered text are both right.
            rendered = adapter.render((Paragraph(children=(Text(text=text),)),))
            assert platform.shown() in ([text], [rendered])

    async def test_the_platform_accepts_every_kind_of_rendered_markdown(self) -> None:
        async with self.platform() as platform:
            adapter, limit = platform.adapter, platform.adapter.limits.text
            parts = split(parse(SAMPLE), limit, adapter.render, adapter.measure)
            for number, part in enumerate(parts):
                content = Content(text=adapter.render(part))
                await adapter.send(platform.target, content, f"k{number}")
            shown = " ".join(platform.shown())
        place = 0
        for word in SAMPLE_WORDS:
            assert word in shown[place:], word
            place = shown.index(word, place)

    async def test_the_platform_accepts_a_rendered_markdown_text_that_ends_anywhere(self) -> None:
        async with self.platform() as platform:
            adapter = platform.adapter
            for number in range(4, len(SAMPLE), 7):
                text = adapter.render(parse(SAMPLE[:number]))
                if adapter.measure(text) <= adapter.limits.text:
                    await adapter.send(platform.target, Content(text=text), f"k{number}")
            assert platform.shown()

    async def test_a_message_can_be_edited_if_the_platform_supports_it(self) -> None:
        async with self.platform() as platform:
            adapter = platform.adapter
            ref = await adapter.send(platform.target, self._plain(platform, "draft"), "k1")
            if isinstance(adapter, CanEdit):
                await adapter.edit(platform.target, ref, self._plain(platform, "final"))
            shown = "final" if isinstance(adapter, CanEdit) else "draft"
            assert platform.shown() == [adapter.render(parse(shown))]

    async def test_a_message_with_a_known_key_is_not_shown_twice(self) -> None:
        async with self.platform() as platform:
            send, content = platform.adapter.send, self._plain(platform, "hello")
            first = await send(platform.target, content, "k1")
            again = await send(platform.target, content, "k1")
            other = await send(platform.target, content, "k2")
            assert first == again != other
            assert platform.shown() == [content.text, content.text]

    async def test_a_file_is_sent(self, tmp_path: Path) -> None:
        async with self.platform() as platform:
            (tmp_path / "note.txt").write_text("hello")
            file = Attachment(kind="file", path=str(tmp_path / "note.txt"), name="note.txt")
            content = Content(text="", attachments=(file,))
            await platform.adapter.send(platform.target, content, "k1")
            assert platform.files() == ["note.txt"]

    async def test_typing_is_shown(self) -> None:
        async with self.platform() as platform:
            assert isinstance(platform.adapter, CanType)
            await platform.adapter.typing(platform.target)
            assert platform.typed == 1

    @pytest.mark.parametrize(
        "error",
        [
            RateLimited("slow down", 3.0),
            Disconnected("gone"),
            Rejected("never"),
            AuthFailed("the token is wrong"),
        ],
        ids=lambda error: type(error).__name__,
    )
    async def test_failures_are_reported_as_our_errors(self, error: HermesError) -> None:
        async with self.platform() as platform:
            send, content = platform.adapter.send, self._plain(platform, "again")
            platform.fail(error)
            with pytest.raises(type(error)) as caught:
                await send(platform.target, self._plain(platform, "hello"), "k1")
            if isinstance(error, RateLimited):
                assert isinstance(caught.value, RateLimited)
                assert caught.value.retry_after == error.retry_after
            await send(platform.target, content, "k2")
            assert platform.shown() == [content.text]

    async def test_a_platform_has_the_features_that_its_quality_level_requires(self) -> None:
        async with self.platform() as platform:
            adapter = platform.adapter
            if platform.quality in ("silver", "gold"):
                assert isinstance(adapter, CanEdit)
                assert adapter.limits.attachments
            if platform.quality == "gold":
                assert adapter.limits.buttons

    def _plain(self, platform: FakePlatform, text: str) -> Content:
        return Content(text=platform.adapter.render(parse(text)))


@asynccontextmanager
async def listening(
    platform: FakePlatform,
    listener: Listener | None = None,
    cursor: MemoryCursor | None = None,
) -> AsyncIterator[Listener]:
    """Runs the adapter until the block ends. Then checks that every event of the adapter has the
    fields that the gateway requires."""
    listener = listener or Listener()
    run, cursor = platform.adapter.run, cursor or MemoryCursor(platform.start)
    async with anyio.create_task_group() as group:
        group.start_soon(run, listener.accept, lambda: None, cursor)
        yield listener
        group.cancel_scope.cancel()
    for event in listener.heard:
        assert event.origin.principal is None, "access is decided by the gateway"
        assert event.origin.reply_to == platform.target, "the answer goes to the same chat"
        assert event.source.account == platform.adapter.account
