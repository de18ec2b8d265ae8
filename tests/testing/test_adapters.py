"""The fake adapters fulfil the contract of adapters, and adapters that break it are detected."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from hermes.testing.adapters import AdapterContract, FakePlatform
from hermes.testing.platforms import (
    BOT,
    FIRST,
    Batch,
    ChatServer,
    EditingAdapter,
    KeyedAdapter,
    PlainAdapter,
    RichAdapter,
    failing,
    to_event,
)
from hermes.types.errors import HermesError, Rejected
from hermes.types.identity import OWNER, Principal, Target
from hermes.types.messages import Content, MessageEvent, MessageRef, Origin, Receipt
from hermes.types.nodes import Document
from hermes.types.platforms import Cursor
from hermes.types.protocols import Accept


class Fake:
    start = None

    def __init__(self, adapter: type[PlainAdapter], server: ChatServer | None = None) -> None:
        self.server = server or ChatServer(deduplicates=adapter.limits.deduplicates)
        self.adapter = adapter(self.server)
        self.target = Target(account=self.adapter.account, chat_id="1")
        self.quality = adapter.quality

    @property
    def echoed(self) -> int:
        return self.server.echoed

    @property
    def connections(self) -> int:
        return self.adapter.connections

    @property
    def typed(self) -> int:
        return len(self.server.typed)

    def says(self, text: str) -> None:
        self.server.says(text)

    def presses(self, question: str, label: str) -> None:
        self.server.presses(question, label)

    def shown(self) -> list[str]:
        return self.server.texts()

    def files(self) -> list[str]:
        sent = (file for one in self.server.messages.values() for file in one.content.attachments)
        return [file.name or "" for file in sent]

    def fail(self, error: HermesError) -> None:
        self.server.trouble = failing(error)


class TestPlain(AdapterContract):
    @asynccontextmanager
    async def platform(self) -> AsyncIterator[FakePlatform]:
        yield Fake(PlainAdapter)


class TestEditing(AdapterContract):
    @asynccontextmanager
    async def platform(self) -> AsyncIterator[FakePlatform]:
        yield Fake(EditingAdapter)


class TestRich(AdapterContract):
    abilities = ("attachments", "buttons", "typing")

    @asynccontextmanager
    async def platform(self) -> AsyncIterator[FakePlatform]:
        yield Fake(RichAdapter)


class TestKeyed(AdapterContract):
    abilities = ("attachments", "deduplication")

    @asynccontextmanager
    async def platform(self) -> AsyncIterator[FakePlatform]:
        yield Fake(KeyedAdapter)


class NeverEchoes(ChatServer):
    """A fake server with a defect: it does not send our own messages back to the adapter. With such
    a server, the tests can't check that the adapter ignores our own messages."""

    async def updates(self, token: str) -> Batch:
        batch = await super().updates(token)
        self.echoed = 0
        others = tuple(update for update in batch.updates if update.user != BOT)
        return Batch(updates=others, token=batch.token)


class HearsItself(PlainAdapter):
    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        batch = Batch(updates=(), token=FIRST)
        while True:
            batch = await self._wire.updates(batch.token)
            for update in batch.updates:
                await accept(to_event(update, self.account))


class SavesTooEarly(PlainAdapter):
    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        async def save_first(event: MessageEvent) -> Receipt:
            await cursor.save(str(int(cursor.value or FIRST) + 1))
            return await accept(event)

        await super().run(save_first, ready, cursor)


class SkipsMissedMessages(PlainAdapter):
    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        if cursor.value is not None:
            await cursor.save((await self._wire.updates(cursor.value)).token)
        await super().run(accept, ready, cursor)


class ChangesEvents(PlainAdapter):
    """The base class of adapters with a defect: `change` changes each event before the adapter
    passes it to the gateway."""

    def change(self, event: MessageEvent) -> MessageEvent:
        raise NotImplementedError

    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        await super().run(lambda event: accept(self.change(event)), ready, cursor)


class ClaimsPrincipal(ChangesEvents):
    def change(self, event: MessageEvent) -> MessageEvent:
        principal = Principal(name="plain", person=OWNER)
        return replace(event, origin=replace(event.origin, principal=principal))


class ForgetsTarget(ChangesEvents):
    def change(self, event: MessageEvent) -> MessageEvent:
        return replace(event, origin=Origin())


class ReportsForAnother(ChangesEvents):
    def change(self, event: MessageEvent) -> MessageEvent:
        return replace(event, source=replace(event.source, account="plain.other"))


class StaysConnected(PlainAdapter):
    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        try:
            await super().run(accept, ready, cursor)
        finally:
            self.connections += 1


class ReportsOnce(PlainAdapter):
    async def run(self, accept: Accept, ready: Callable[[], None], cursor: Cursor) -> None:
        ready()
        await super().run(accept, lambda: None, cursor)


class CountsTooLittle(PlainAdapter):
    def measure(self, text: str) -> int:
        return len(text) // 2


class LosesBlocks(PlainAdapter):
    def render(self, tree: Document) -> str:
        return super().render(tree[:1])


class InventsKeys(KeyedAdapter):
    sent = 0

    async def send(self, target: Target, content: Content, key: str) -> MessageRef:
        self.sent += 1
        return await super().send(target, content, f"{key}.{self.sent}")


class PromisesTooMuch(PlainAdapter):
    quality = "gold"


def broken(adapter: type[PlainAdapter], server: ChatServer | None = None) -> AdapterContract:
    class Broken(AdapterContract):
        abilities = ("attachments", "buttons", "deduplication", "typing")
        patience = 0.3

        @asynccontextmanager
        async def platform(self) -> AsyncIterator[FakePlatform]:
            yield Fake(adapter, server)

    return Broken()


BREAKERS: dict[str, Callable[[], Awaitable[None]]] = {
    "hears itself": lambda: broken(HearsItself).test_the_adapter_ignores_its_own_messages(),
    "the server never echoes": lambda: broken(
        PlainAdapter, NeverEchoes()
    ).test_the_adapter_ignores_its_own_messages(),
    "saves too early": lambda: broken(SavesTooEarly).test_only_accepted_messages_are_acknowledged(),
    "skips missed messages": lambda: broken(
        SkipsMissedMessages
    ).test_a_new_connection_continues_at_the_cursor(),
    "claims a principal": lambda: broken(
        ClaimsPrincipal
    ).test_messages_are_accepted_once_and_in_order(),
    "forgets the target": lambda: broken(
        ForgetsTarget
    ).test_messages_are_accepted_once_and_in_order(),
    "reports for another account": lambda: broken(
        ReportsForAnother
    ).test_messages_are_accepted_once_and_in_order(),
    "stays connected": lambda: broken(
        StaysConnected
    ).test_an_adapter_reports_that_it_is_connected_and_disconnects_when_cancelled(),
    "reports once that it is connected": lambda: broken(
        ReportsOnce
    ).test_an_adapter_reports_again_that_it_is_connected_when_the_platform_answers(),
    "counts too little": lambda: broken(
        CountsTooLittle
    ).test_a_text_at_the_limit_arrives_whole_and_a_longer_one_is_rejected("x"),
    "loses blocks": lambda: broken(
        LosesBlocks
    ).test_the_platform_accepts_every_kind_of_rendered_markdown(),
    "invents keys": lambda: broken(
        InventsKeys
    ).test_a_message_with_a_known_key_is_not_shown_twice(),
    "has an ability without tests": lambda: broken(
        RichAdapter
    ).test_every_ability_of_the_adapter_is_tested(),
    "promises too much": lambda: broken(
        PromisesTooMuch
    ).test_a_platform_has_the_features_that_its_quality_level_requires(),
}


@pytest.mark.parametrize("name", BREAKERS)
async def test_adapters_that_break_the_contract_are_detected(name: str) -> None:
    with pytest.raises((AssertionError, Rejected, ExceptionGroup)):
        await BREAKERS[name]()
