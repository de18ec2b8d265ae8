"""Expired rows are deleted."""

import operator
import time
from pathlib import Path

from hermes.state.retention import forget_messages, forget_requests
from hermes.testing.platforms import ChatServer, PlainAdapter
from hermes.testing.running import DRAINING, rows, running, until, until_rows
from hermes.testing.scripted import ScriptedModel, calls, says
from hermes.types.identity import OWNER, Principal, Source
from hermes.types.messages import Asked, MessageEvent, Origin, UserMessage


def request(number: int) -> MessageEvent:
    return MessageEvent(
        dedupe_key=f"api:{number}",
        source=Source(platform="api", account="api", chat_kind="private", chat_id="", user_id="k"),
        origin=Origin(trigger="api", principal=Principal(name="api", person=OWNER)),
        received_at=time.time(),
        body=Asked(messages=(UserMessage(text="hi"),), detached=True),
    )


async def test_all_rows_of_stateless_requests_are_deleted(tmp_path: Path) -> None:
    model = ScriptedModel([calls(("append", {"token": "x"})), says("done")])
    async with running(tmp_path, [], model, DRAINING) as gateway:
        await gateway.accept(request(1))
        await until(lambda: not gateway.busy)
        tables = ("turns", "inbox", "messages", "calls", "run_events")
        for table in tables:
            assert await rows(gateway._store, f"select 1 from {table}")
        await gateway._store.run(forget_requests, time.time() - 60)
        for table in tables:
            assert await rows(gateway._store, f"select 1 from {table}")
        await gateway._store.run(forget_requests, time.time() + 60)
        for table in (*tables, "questions"):
            assert await rows(gateway._store, f"select 1 from {table}") == []


async def test_conversations_and_open_questions_are_kept(tmp_path: Path) -> None:
    server = ChatServer()
    model = ScriptedModel([says("hello"), calls(("ask", {})), says("red it is")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("hi")
        await until(server.texts)
        server.says("paint it")
        await until(lambda: len(server.texts()) == 2)
        query = "select 1 from deliveries where state <> 'delivered'"
        await until_rows(gateway._store, query, operator.not_)
        await gateway._store.run(forget_requests, time.time() + 60)
        await gateway._store.run(forget_messages, time.time() + 60)
        assert await rows(gateway._store, "select 1 from deliveries") == []
        assert await rows(gateway._store, "select state from inbox") == [("bound",)]
        server.says("red")
        await until(lambda: server.texts()[-1] == "red it is")
    said = [message.text for message in model.requests[2].messages]
    assert said[:3] == ["hi", "hello", "paint it"]
