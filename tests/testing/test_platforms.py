"""The fake platforms keep the contract that real ones will have to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hermes.testing.adapters import AdapterContract, Platform
from hermes.testing.platforms import ChatServer, EditingAdapter, PlainAdapter, failing
from hermes.types.errors import HermesError, Rejected
from hermes.types.identity import Target


class Fake:
    def __init__(self, adapter: type[PlainAdapter]) -> None:
        self.server = ChatServer()
        self.adapter = adapter(self.server)
        self.target = Target(account=self.adapter.account, chat_id="1")

    def says(self, text: str) -> None:
        self.server.says(text)

    def shown(self) -> list[str]:
        return self.server.texts()

    def fail(self, error: HermesError) -> None:
        self.server.trouble = failing(error)


class TestPlain(AdapterContract):
    @asynccontextmanager
    async def platform(self) -> AsyncIterator[Platform]:
        yield Fake(PlainAdapter)


class TestEditing(AdapterContract):
    @asynccontextmanager
    async def platform(self) -> AsyncIterator[Platform]:
        yield Fake(EditingAdapter)


async def test_the_server_refuses_what_real_ones_refuse() -> None:
    server = ChatServer()
    message = await server.send("1", "hello")
    for text in ("", " ", "x" * 5000):
        with pytest.raises(Rejected):
            await server.send("1", text)
    with pytest.raises(Rejected, match="not modified"):
        await server.edit(message, "hello")
    with pytest.raises(Rejected, match="no message"):
        await server.edit("m99", "hello")
