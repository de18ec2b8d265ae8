"""What every adapter of a chat platform must do, as a test class to inherit from.

class TestTelegram(AdapterContract):
    @asynccontextmanager
    async def platform(self) -> AsyncIterator[Platform]: ...
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import anyio
import pytest

from hermes.testing.running import until
from hermes.types.errors import Disconnected, HermesError, RateLimited, Rejected
from hermes.types.identity import Target
from hermes.types.messages import Accepted, Content, MessageEvent, Receipt, Said
from hermes.types.protocols import CanEdit, PlatformAdapter


class Platform(Protocol):
    """A fake server of the platform, and the adapter that talks to it."""

    @property
    def adapter(self) -> PlatformAdapter: ...
    @property
    def target(self) -> Target:
        """A chat that exists."""
        ...

    def says(self, text: str) -> None:
        """A person writes in the chat."""
        ...

    def shown(self) -> list[str]:
        """What of ours stands in the chat."""
        ...

    def fail(self, error: HermesError) -> None:
        """The next call fails in the platform's way of saying this."""
        ...


class Listener:
    """Accepts, and can be told not to."""

    def __init__(self) -> None:
        self.heard: list[MessageEvent] = []
        self.refusing = False

    async def accept(self, event: MessageEvent) -> Receipt:
        if self.refusing:
            raise Disconnected("the store is not there")
        self.heard.append(event)
        return Accepted(id=event.dedupe_key)

    def texts(self) -> list[str]:
        return [event.body.text for event in self.heard if isinstance(event.body, Said)]


class AdapterContract:
    def platform(self) -> AbstractAsyncContextManager[Platform]:
        """A fresh fake server and its adapter."""
        raise NotImplementedError

    async def test_what_is_said_is_heard_once_and_in_order(self) -> None:
        async with self.platform() as platform, listening(platform) as listener:
            for word in ("one", "two", "three"):
                platform.says(word)
            await until(lambda: len(listener.heard) == 3)
        assert listener.texts() == ["one", "two", "three"]
        assert len({event.dedupe_key for event in listener.heard}) == 3

    async def test_only_what_was_accepted_is_acknowledged(self) -> None:
        async with self.platform() as platform:
            first, second = Listener(), Listener()
            first.refusing = True
            platform.says("hello")
            with pytest.raises(Disconnected):
                await platform.adapter.run(first.accept, lambda: None)
            async with listening(platform, second):
                await until(lambda: second.heard)
        assert second.texts() == ["hello"]

    async def test_the_same_message_has_the_same_key_after_a_restart(self) -> None:
        async with self.platform() as platform:
            platform.says("hello")
            keys = set()
            for _ in range(2):
                seen: list[str] = []

                async def note(event: MessageEvent, seen: list[str] = seen) -> Receipt:
                    seen.append(event.dedupe_key)
                    raise Disconnected("killed before the commit")

                with pytest.raises(Disconnected):
                    await platform.adapter.run(note, lambda: None)
                keys |= set(seen)
        assert len(keys) == 1

    async def test_it_says_when_it_is_connected_and_ends_when_cancelled(self) -> None:
        async with self.platform() as platform:
            ready = anyio.Event()
            with anyio.fail_after(5):
                async with anyio.create_task_group() as group:
                    group.start_soon(platform.adapter.run, Listener().accept, ready.set)
                    await ready.wait()
                    group.cancel_scope.cancel()

    async def test_our_own_messages_are_not_heard(self) -> None:
        async with self.platform() as platform, listening(platform) as listener:
            await platform.adapter.send(platform.target, Content(text="from us"))
            platform.says("from them")
            await until(lambda: listener.heard)
        assert listener.texts() == ["from them"]

    async def test_a_text_at_the_limit_arrives_whole(self) -> None:
        async with self.platform() as platform:
            text = "x" * platform.adapter.limits.text
            await platform.adapter.send(platform.target, Content(text=text))
            assert platform.shown() == [text]

    async def test_what_was_sent_can_be_edited_where_the_platform_can(self) -> None:
        async with self.platform() as platform:
            adapter = platform.adapter
            ref = await adapter.send(platform.target, Content(text="draft"))
            if isinstance(adapter, CanEdit):
                await adapter.edit(platform.target, ref, Content(text="final"))
            assert platform.shown() == ["final" if isinstance(adapter, CanEdit) else "draft"]

    @pytest.mark.parametrize(
        "error", [RateLimited("slow down", 3.0), Disconnected("gone"), Rejected("never")]
    )
    async def test_failures_are_told_in_our_words(self, error: HermesError) -> None:
        async with self.platform() as platform:
            platform.fail(error)
            with pytest.raises(type(error)) as caught:
                await platform.adapter.send(platform.target, Content(text="hello"))
            if isinstance(error, RateLimited):
                assert isinstance(caught.value, RateLimited)
                assert caught.value.retry_after == error.retry_after
            await platform.adapter.send(platform.target, Content(text="again"))
            assert platform.shown() == ["again"]


@asynccontextmanager
async def listening(
    platform: Platform, listener: Listener | None = None
) -> AsyncIterator[Listener]:
    listener = listener or Listener()
    async with anyio.create_task_group() as group:
        group.start_soon(platform.adapter.run, listener.accept, lambda: None)
        yield listener
        group.cancel_scope.cancel()
