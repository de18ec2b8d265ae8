"""A person moves a conversation to their own chat on another platform. Nobody else can move it."""

from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from hermes.control import people
from hermes.control.gateway import Gateway
from hermes.testing.platforms import ChatServer, EditingAdapter, PlainAdapter, Update, to_event
from hermes.testing.running import held, running, until
from hermes.testing.scripted import ScriptedModel, says
from hermes.types.identity import ChatKind
from hermes.types.messages import Accepted


async def asks(
    gateway: Gateway, text: str, user: str = "7", kind: ChatKind = "private", account: str = "plain"
) -> Accepted:
    update = Update(id=0, chat=user, user=user, text=text, kind=kind)
    event = replace(to_event(update, account), dedupe_key=f"{account}:{user}:{text}:{kind}")
    receipt = await gateway.accept(event)
    assert isinstance(receipt, Accepted)
    return receipt


async def test_a_conversation_continues_in_the_other_chat_of_the_same_person(
    tmp_path: Path,
) -> None:
    server, other = ChatServer(), ChatServer()
    model = ScriptedModel([says("Hello."), says("Oslo it is."), says("Yes."), says("New.")])
    adapters = [PlainAdapter(server), EditingAdapter(other)]
    async with running(tmp_path, adapters, model) as gateway:
        await until(lambda: all(adapter.connections for adapter in adapters))
        other.says("hi", chat="c9", user="9")
        await until(lambda: other.texts("c9") == ["Hello."])
        server.says("A trip to Oslo", chat="7")
        await until(lambda: server.texts("7") == ["Oslo it is."])
        refused = await asks(gateway, "/handoff editing")
        assert refused.failed
        assert refused.reply
        assert refused.reply.startswith("I know no private chat with you on editing.")
        await gateway._store.run(people.link, ("plain:7", "editing:9"), 1.0)
        gateway.notice_change()
        await until(lambda: gateway._access._people.linked)
        done = await asks(gateway, "/handoff  editing ")
        assert done.reply == (
            "“A trip to Oslo” continues in your chat on editing. A new conversation begins here."
        )
        await until(
            lambda: other.texts("c9")[-1] == "Your conversation “A trip to Oslo” continues here."
        )
        other.says("Still Oslo?", chat="c9", user="9")
        await until(lambda: other.texts("c9")[-1] == "Yes.")
        server.says("Something else", chat="7")
        await until(lambda: server.texts("7")[-1] == "New.")
    texts = [[one.text for one in request.messages] for request in model.requests]
    assert texts[2:] == [["A trip to Oslo", "Oslo it is.", "Still Oslo?"], ["Something else"]]


@pytest.mark.parametrize(
    ("text", "kind", "reply"),
    [
        ("/handoff", "private", "Name the platform"),
        ("/handoff plain", "group", "This conversation belongs to a group."),
        ("/handoff plain", "private", "I know no private chat with you"),
    ],
)
async def test_a_handoff_that_is_not_possible_is_refused_with_a_reason(
    tmp_path: Path, text: str, kind: ChatKind, reply: str
) -> None:
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        refused = await asks(gateway, text, kind=kind)
        assert refused.failed
        assert refused.reply
        assert refused.reply.startswith(reply)


async def test_nothing_is_handed_over_while_a_turn_runs_or_without_a_conversation(
    tmp_path: Path,
) -> None:
    go_on = anyio.Event()
    model = ScriptedModel([says("a"), held(go_on, says("b"))])
    async with running(tmp_path, [], model) as gateway:
        await asks(gateway, "hi", user="9", account="editing")
        await until(lambda: not gateway.busy)
        await gateway._store.run(people.link, ("plain:7", "editing:9"), 1.0)
        gateway.notice_change()
        await until(lambda: gateway._access._people.linked)
        empty = await asks(gateway, "/handoff editing")
        assert empty.reply == "There is no conversation here yet."
        await asks(gateway, "go")
        working = await asks(gateway, "/handoff  editing")
        assert working.reply
        assert working.reply.startswith("/handoff can't be used during a turn")
        there = await asks(gateway, "/handoff plain", user="9", account="editing")
        assert there.reply == "I am still working in your chat on plain. Try again later."
        go_on.set()
        await until(lambda: not gateway.busy)
