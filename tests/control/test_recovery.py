"""Several processes share a store. A process resumes the work of another process only if the other
process is dead."""

from pathlib import Path

import anyio
import msgspec
import pytest
from msgspec.structs import replace

from hermes.control.recovery import Recovery
from hermes.control.turn_transactions import Claim, TurnTransactions
from hermes.core.tools.call import UNKNOWN_OUTCOME
from hermes.state import inbox, questions, turns
from hermes.testing.platforms import ChatServer, EditingAdapter, PlainAdapter
from hermes.testing.rows import said, session
from hermes.testing.running import QUIET, Conditions, TroubledStore, refused, rows, running, until
from hermes.testing.scripted import ScriptedModel, calls, first_results, hangs, says
from hermes.testing.stores import open_test_store
from hermes.testing.tools import slow
from hermes.types.errors import StoreUnavailable
from hermes.types.events import UsageReported
from hermes.types.identity import OWNER, AgentId, Principal, Source, TurnId
from hermes.types.messages import AssistantMessage, MessageEvent, Origin, Said
from hermes.types.models import ModelRequest
from hermes.types.protocols import Emit
from hermes.types.tools import ToolContext


async def test_two_gateways_on_one_store_leave_each_other_alone(tmp_path: Path) -> None:
    one, other = ChatServer(), ChatServer()
    first, second = ScriptedModel([hangs()]), ScriptedModel([says("from the second")])
    async with running(tmp_path, [PlainAdapter(one, "one")], first) as left:
        one.says("think")
        await until(lambda: first.requests)
        async with running(tmp_path, [PlainAdapter(other, "other")], second) as right:
            other.says("hi")
            await until(other.texts)
            await right._sweep()
            await left._sweep()
            assert (left.busy, right.busy) == (1, 0)
            states = await rows(right._store, "select state, epoch from turns order by id")
            assert states == [("running", 1), ("completed", 1)]
    assert len(second.requests) == 1


async def test_one_account_is_served_by_one_process(tmp_path: Path) -> None:
    server, twin = ChatServer(), ChatServer()
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([])) as left:
        server.says("/status")
        await until(server.texts)
        async with running(tmp_path, [], ScriptedModel([])) as right:
            assert not await right.hold_account(PlainAdapter(twin))
            assert await left.hold_account(PlainAdapter(server))


async def test_the_work_of_a_gateway_that_ended_passes_to_a_living_one(tmp_path: Path) -> None:
    server = ChatServer()
    server.says("think")
    dying, living = ScriptedModel([hangs()]), ScriptedModel([says("done"), says("and that")])
    async with anyio.create_task_group() as group:
        end = anyio.Event()

        async def die() -> None:
            async with running(tmp_path, [PlainAdapter(server)], dying):
                await end.wait()

        group.start_soon(die)
        await until(lambda: dying.requests)
        server.says("and this")
        await until(server.texts)
        async with running(tmp_path, [PlainAdapter(server)], living) as gateway:
            assert not gateway.busy
            end.set()
            await until(lambda: server.texts()[1:] == ["done", "and that"])
    assert living.requests[0].messages == dying.requests[0].messages


async def test_a_stop_that_another_process_requests_ends_a_turn_of_this_process(
    tmp_path: Path,
) -> None:
    server, model = ChatServer(), ScriptedModel([hangs()])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("think")
        await until(lambda: model.requests)
        ((turn,),) = await rows(gateway._store, "select id from turns")
        async with open_test_store(tmp_path) as foreign:
            await foreign.run(turns.request_stop, TurnId(turn), "operator")
            await until(lambda: server.texts() == ["(stopped: by you)"])


async def test_a_question_that_is_decided_in_another_process_resumes_a_turn_of_this_process(
    tmp_path: Path,
) -> None:
    server, model = ChatServer(), ScriptedModel([calls(("ask", {})), says("blue it is")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        server.says("paint it")
        await until(server.texts)
        ((question,),) = await rows(gateway._store, "select id from questions")
        async with open_test_store(tmp_path) as foreign:
            await foreign.run(questions.decide, question, "answered", "blue", "operator", 0.0)
            await until(lambda: "blue it is" in server.texts())


def second_resume_fails(resumed: list[str]) -> Conditions:
    """Returns the options of a gateway whose store fails when the gateway resumes a second turn. An
    item is added to `resumed` for each attempt."""

    async def before(name: str) -> None:
        if name == "TurnTransactions.resume":
            resumed.append(name)
            if len(resumed) == 2:
                raise StoreUnavailable("the disk is full")

    return replace(QUIET, wrap_store=lambda store: TroubledStore(store, before))


async def test_a_claimed_turn_runs_although_the_next_turn_can_not_be_resumed(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    resumed: list[str] = []
    asks, painted = calls(("ask", {})), says("painted")
    model = ScriptedModel([asks, asks, painted, painted])
    troubled = second_resume_fails(resumed)
    async with running(tmp_path, [PlainAdapter(server)], model, troubled) as gateway:
        for chat in ("1", "2"):
            server.says("paint it", chat=chat)
        await until(lambda: server.texts("1") and server.texts("2") and not gateway.busy)
        async with open_test_store(tmp_path) as foreign:
            await rows(foreign, "update questions set state = 'answered', answer = 'blue'")

        def answered() -> int:
            return sum("painted" in server.texts(chat) for chat in ("1", "2"))

        await until(lambda: answered() == 1 and len(resumed) == 2)
        gateway.notice_change()
        await until(lambda: answered() == 2)
    assert len(resumed) == 3


async def test_a_turn_of_a_dead_process_runs_although_the_next_turn_can_not_be_resumed(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    resumed: list[str] = []
    dying, living = ScriptedModel([hangs(), hangs()]), ScriptedModel([says("done"), says("done")])
    async with anyio.create_task_group() as group:
        end = anyio.Event()

        async def die() -> None:
            async with running(tmp_path, [PlainAdapter(server)], dying):
                await end.wait()

        group.start_soon(die)
        for chat in ("1", "2"):
            server.says("think", chat=chat)
        await until(lambda: len(dying.requests) == 2)
        troubled = second_resume_fails(resumed)
        async with running(tmp_path, [PlainAdapter(server)], living, troubled):
            end.set()
            await until(lambda: server.texts("1") == server.texts("2") == ["done"])
    assert len(resumed) == 3


async def test_a_turn_that_another_process_has_claimed_is_no_longer_run_here(
    tmp_path: Path,
) -> None:
    server = ChatServer()
    model = ScriptedModel([calls(("append", {"token": "x"})), says("never")])
    async with running(tmp_path, [EditingAdapter(server)], model) as gateway:

        async def before(name: str) -> None:
            if name.startswith("TurnCheckpoint.said"):
                await rows(gateway._store, "update turns set epoch = epoch + 1, owner = 'other'")

        gateway._runner._store = TroubledStore(gateway._store, before)
        server.says("work")
        await until(lambda: model.requests and not gateway.busy)
        assert await rows(gateway._store, "select state, epoch from turns") == [("running", 2)]
    assert len(model.requests) == 1
    assert not (tmp_path / "workspace" / "appended").exists()


async def test_a_call_that_must_not_run_twice_is_not_repeated(tmp_path: Path) -> None:
    server = ChatServer()
    server.says("work")

    async def before(name: str) -> None:
        if name.startswith("TurnCheckpoint.answered"):
            raise StoreUnavailable("the disk is full")

    troubled = replace(QUIET, wrap_store=lambda store: TroubledStore(store, before))
    first = ScriptedModel([calls(("append", {"token": "x"}))])
    appended = tmp_path / "workspace" / "appended"
    async with running(tmp_path, [PlainAdapter(server)], first, troubled):
        await until(lambda: appended.exists() and appended.read_text())
    second = ScriptedModel([says("I looked: it is there")])
    async with running(tmp_path, [PlainAdapter(server)], second):
        await until(server.texts)
    assert appended.read_text() == "x\n"
    assert first_results(second) == [UNKNOWN_OUTCOME]
    assert refused(second.requests[0]) is None


async def test_a_call_that_may_run_twice_is_repeated(tmp_path: Path) -> None:
    server, begun = ChatServer(), anyio.Event()
    server.says("work")

    async def forever(context: ToolContext, arguments: msgspec.Struct) -> str:
        begun.set()
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async def at_once(context: ToolContext, arguments: msgspec.Struct) -> str:
        return "woke up"

    first = ScriptedModel([calls(("slow", {}), text="Let me see.")])
    sleeping = replace(QUIET, tools=(replace(slow, handler=forever),))
    async with running(tmp_path, [PlainAdapter(server)], first, sleeping):
        await begun.wait()
    second = ScriptedModel([says("done")])
    waking = replace(QUIET, tools=(replace(slow, handler=at_once),))
    async with running(tmp_path, [PlainAdapter(server)], second, waking):
        await until(lambda: server.texts() == ["Let me see.\n\ndone"])
    assert first_results(second) == ["woke up"]


RENAMED = "update {} set agent = 'gone', session = replace(session, 'agent:main:', 'agent:gone:')"


async def test_the_work_of_an_agent_that_is_not_hosted_is_left_for_a_process_that_hosts_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, dying = ChatServer(), ScriptedModel([hangs()])
    async with running(tmp_path, [PlainAdapter(server)], dying) as gateway:
        server.says("think")
        await until(lambda: dying.requests)
        server.says("and this")
        await until(server.texts)
        for table in ("turns", "inbox"):
            await rows(gateway._store, RENAMED.format(table))
        await rows(
            gateway._store, "update sessions set key = replace(key, 'agent:main:', 'agent:gone:')"
        )
        owner = gateway._store.owner
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        await gateway._sweep()
        store = gateway._store
        assert await rows(store, "select state, owner, epoch from turns") == [("running", owner, 1)]
        waiting = await rows(store, "select owner from inbox where state = 'pending'")
        assert waiting == [(owner,)]
        assert await store.dead() == [owner]
        assert caplog.text.count("agent 'gone' wait: it is not hosted here") == 1
        hosted = {AgentId("gone"): gateway._recovery._agents[AgentId("main")]}
        async with open_test_store(tmp_path, "gateway") as other:
            started: list[Claim] = []
            await Recovery(other, TurnTransactions(other.owner, hosted), hosted).take_over(
                started.append
            )
            assert [claim.turn.agent for claim in started] == ["gone"]
            waiting = await rows(store, "select owner from inbox where state = 'pending'")
            assert waiting == [(other.owner,)]
            assert await store.dead() == []


async def test_a_waiting_message_of_an_agent_that_is_not_hosted_does_not_delay_other_messages(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server, model = ChatServer(), ScriptedModel([says("hello")])
    async with running(tmp_path, [PlainAdapter(server)], model) as gateway:
        store, key = gateway._store, session(agent="gone")
        await store.run(inbox.insert, "i1", said("k"), key, None, store.owner)
        await gateway._sweep()
        await gateway._sweep()
        assert await rows(store, "select state from inbox") == [("pending",)]
        server.says("hi")
        await until(lambda: server.texts() == ["hello"])
    assert caplog.text.count("agent 'gone' wait: it is not hosted here") == 1


TERMINAL = replace(QUIET, terminal=True)


def typed(text: str) -> MessageEvent:
    source = Source(
        platform="cli", account="cli", chat_kind="private", chat_id="work", user_id="ada"
    )
    return MessageEvent(
        dedupe_key=text,
        source=source,
        origin=Origin(principal=Principal(name="cli", person=OWNER)),
        received_at=0.0,
        body=Said(text=text),
    )


async def test_a_terminal_resumes_the_turn_of_a_dead_terminal(tmp_path: Path) -> None:
    dying, living = ScriptedModel([hangs()]), ScriptedModel([says("one"), says("two")])
    async with running(tmp_path, [], dying, TERMINAL) as gateway:
        await gateway.accept(typed("first"))
        await until(lambda: dying.requests)
    async with running(tmp_path, [], living, TERMINAL) as gateway:
        await gateway.accept(typed("second"))
        await until(lambda: gateway.busy == 0)
        states = await rows(gateway._store, "select state from turns order by id")
    assert states == [("completed",), ("completed",)]
    assert len(living.requests) == 2


async def test_a_terminal_leaves_a_dead_gateways_work_to_a_gateway(tmp_path: Path) -> None:
    server = ChatServer()
    server.says("think")
    dying, visiting = ScriptedModel([hangs()]), ScriptedModel([])
    async with running(tmp_path, [PlainAdapter(server)], dying):
        await until(lambda: dying.requests)
    async with running(tmp_path, [], visiting, TERMINAL) as gateway:
        await gateway._sweep()
        assert gateway.busy == 0
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([says("done")])):
        await until(server.texts)
    assert server.texts() == ["done"]


@pytest.mark.parametrize("there", [True, False])
async def test_a_turn_is_resumed_in_the_folder_in_which_it_began(
    tmp_path: Path, there: bool
) -> None:
    server = ChatServer()
    dying = ScriptedModel([calls(("slow", {"seconds": 0})), hangs()])
    begun, elsewhere = replace(QUIET, workspace="begun"), replace(QUIET, workspace="elsewhere")
    async with running(tmp_path, [PlainAdapter(server)], dying, begun):
        server.says("work")
        await until(lambda: len(dying.requests) == 2)
    if not there:
        (tmp_path / "begun").rmdir()
    living = ScriptedModel([calls(("append", {"token": "x"})), says("done")])
    async with running(tmp_path, [PlainAdapter(server)], living, elsewhere):
        await until(lambda: "done" in server.texts())
    place = "begun" if there else "elsewhere"
    assert [path.parent.name for path in tmp_path.glob("*/appended")] == [place]


async def test_usage_before_a_kill_is_counted(tmp_path: Path) -> None:
    async def costly(request: ModelRequest, emit: Emit) -> AssistantMessage:
        emit(UsageReported(prompt_tokens=1000, completion_tokens=1, cost=0.5))
        return await calls(("slow", {"seconds": 0}))(request, emit)

    async def last(request: ModelRequest, emit: Emit) -> AssistantMessage:
        emit(UsageReported(prompt_tokens=1000, completion_tokens=1, cost=0.5))
        return await says("done")(request, emit)

    server, dying = ChatServer(), ScriptedModel([costly, hangs()])
    async with running(tmp_path, [PlainAdapter(server)], dying):
        server.says("work")
        await until(lambda: len(dying.requests) == 2)
    async with running(tmp_path, [PlainAdapter(server)], ScriptedModel([last])) as gateway:
        await until(lambda: "done" in server.texts())
        assert await rows(gateway._store, "select prompt_tokens, cost from turns") == [(2000, 1.0)]
