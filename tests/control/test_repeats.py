"""A request that is repeated with its idempotency key is not run twice."""

import time
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from hermes.control.gateway import Gateway
from hermes.streaming.fold import EventFold, View, answer
from hermes.testing.running import held, refused, rows, running, until
from hermes.testing.scripted import Answer, ScriptedModel, calls, fails, hangs, says
from hermes.types.errors import AuthFailed, Disconnected, HermesError, RateLimited, Rejected
from hermes.types.events import AgentEvent, TurnFinished
from hermes.types.identity import OWNER, Principal, Source, TurnId
from hermes.types.messages import (
    Accepted,
    Asked,
    AssistantMessage,
    Duplicate,
    MessageEvent,
    Origin,
    ToolMessage,
    UserMessage,
)

AWAY = Disconnected("away")
APPEND = calls(("append", {"token": "once"}), text="Let me note it.")


def request(key: str = "k", text: str = "hi", session: str = "") -> MessageEvent:
    """Returns an API request with an idempotency key. It has no session if `session` is empty."""
    principal = Principal(name="api", person=OWNER)
    return MessageEvent(
        dedupe_key=f"api:{key}",
        fingerprint=f"{session} {text}",
        source=Source(
            platform="api",
            account="api",
            chat_kind="private",
            chat_id=session or f"request/{time.monotonic_ns()}",
            user_id="api",
        ),
        origin=Origin(trigger="api", principal=principal),
        received_at=time.time(),
        body=Asked(
            messages=(UserMessage(text=text),), stateless=not session, detached=True, live=False
        ),
    )


async def answered(gateway: Gateway, event: MessageEvent) -> View:
    """Returns the last event of the turn that answers the request."""
    receipt = await gateway.accept(event)
    assert isinstance(receipt, Accepted | Duplicate)
    fold = EventFold()
    async for envelope in gateway.follow(TurnId(receipt.turn or receipt.id)):
        fold.feed(envelope.seq, envelope.event)
    return fold.view()


def code(view: View) -> str:
    assert view.outcome is not None
    return view.outcome.code or view.outcome.outcome


places = pytest.mark.parametrize("session", ["", "s"], ids=["stateless", "session"])


@places
@pytest.mark.parametrize("error", [AWAY, AuthFailed("no key"), RateLimited("slow", 9.0)])
async def test_a_turn_that_failed_temporarily_runs_again_until_it_completes(
    tmp_path: Path, error: HermesError, session: str
) -> None:
    model = ScriptedModel([fails(error, after="I be"), says("hello")])
    async with running(tmp_path, [], model) as gateway:
        assert code(await answered(gateway, request(session=session))) == error.code
        for _ in range(2):
            view = await answered(gateway, request(session=session))
            assert (code(view), answer(view)) == ("completed", "hello")
    assert len(model.requests) == 2
    assert model.requests[0].messages == model.requests[1].messages


@places
@pytest.mark.parametrize(
    ("failure", "expected"), [(fails(Rejected("no")), "rejected"), (says("hello"), "completed")]
)
async def test_a_turn_that_ended_permanently_never_runs_again(
    tmp_path: Path, failure: Answer, expected: str, session: str
) -> None:
    model = ScriptedModel([failure])
    async with running(tmp_path, [], model) as gateway:
        for _ in range(3):
            assert code(await answered(gateway, request(session=session))) == expected
    assert len(model.requests) == 1


@places
async def test_simultaneous_repeats_run_a_failed_turn_once(tmp_path: Path, session: str) -> None:
    model = ScriptedModel([fails(AWAY), says("hello")])
    views: list[View] = []

    async def ask(gateway: Gateway) -> None:
        views.append(await answered(gateway, request(session=session)))

    async with running(tmp_path, [], model) as gateway:
        await answered(gateway, request(session=session))
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(ask, gateway)
    assert [answer(view) for view in views] == ["hello"] * 5
    assert len(model.requests) == 2


async def test_a_repeat_of_a_running_turn_follows_it(tmp_path: Path) -> None:
    go = anyio.Event()
    model = ScriptedModel([held(go, says("hello"))])
    views: list[View] = []

    async def ask(gateway: Gateway) -> None:
        views.append(await answered(gateway, request()))

    async with running(tmp_path, [], model) as gateway:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, gateway)
            await until(lambda: model.requests)
            group.start_soon(ask, gateway)
            group.start_soon(ask, gateway)
            await anyio.lowlevel.checkpoint()
            go.set()
    assert [answer(view) for view in views] == ["hello"] * 3
    assert len(model.requests) == 1


@places
async def test_a_turn_is_resumed_where_it_failed_and_no_tool_runs_twice(
    tmp_path: Path, session: str
) -> None:
    model = ScriptedModel([APPEND, fails(AWAY, after="I have"), says("Done.")])
    async with running(tmp_path, [], model) as gateway:
        assert code(await answered(gateway, request(session=session))) == "disconnected"
        view = await answered(gateway, request(session=session))
        later = await answered(gateway, request(session=session))
    assert answer(view) == answer(later) == "Let me note it.\n\nDone."
    assert (tmp_path / "workspace" / "appended").read_text() == "once\n"
    kinds = [type(message) for message in model.requests[-1].messages]
    assert kinds == [UserMessage, AssistantMessage, ToolMessage]
    assert all(refused(one) is None for one in model.requests)


async def test_the_events_of_all_attempts_of_a_turn_are_consistent(tmp_path: Path) -> None:
    model = ScriptedModel([APPEND, fails(AWAY, after="I have"), says("Done.")])
    events: list[AgentEvent] = []
    async with running(tmp_path, [], model) as gateway:
        await answered(gateway, request())
        receipt = await gateway.accept(request())
        assert isinstance(receipt, Accepted)
        assert receipt.turn is not None
        await answered(gateway, request())
        async for envelope in gateway.follow(TurnId(receipt.turn)):
            events.append(envelope.event)
    ends = [event.outcome for event in events if isinstance(event, TurnFinished)]
    assert ends == ["completed"]


async def test_a_slow_reader_of_the_first_attempt_does_not_mislead_a_repeat(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([fails(AWAY), says("hello")])
    async with running(tmp_path, [], model) as gateway:
        receipt = await gateway.accept(request())
        assert isinstance(receipt, Accepted)
        with gateway.following(TurnId(receipt.id)) as slow:
            await until(lambda: not gateway.busy)
            assert answer(await answered(gateway, request())) == "hello"
            left = await slow.rest()
    ends = [one.event for one in left if isinstance(one.event, TurnFinished)]
    assert [end.outcome for end in ends] == ["completed"], "it reads the second attempt too"


async def test_a_repeat_after_later_messages_is_a_new_message(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([fails(AWAY), says("about weather"), says("about bread")])
    async with running(tmp_path, [], model) as gateway:
        await answered(gateway, request("a", "bread?", "s"))
        await answered(gateway, request("b", "weather?", "s"))
        assert answer(await answered(gateway, request("a", "bread?", "s"))) == "about bread"
        assert answer(await answered(gateway, request("a", "bread?", "s"))) == "about bread"
    said = [one.text for one in model.requests[-1].messages if isinstance(one, UserMessage)]
    assert said == ["bread?", "weather?", "bread?"]
    assert len(model.requests) == 3


async def test_a_repeat_in_a_busy_session_waits(tmp_path: Path) -> None:
    go = anyio.Event()
    model = ScriptedModel([fails(AWAY), held(go, says("one")), says("two")])
    async with running(tmp_path, [], model) as gateway:
        await answered(gateway, request("a", "bread?", "s"))
        await gateway.accept(request("b", "weather?", "s"))
        await until(lambda: len(model.requests) == 2)
        receipt = await gateway.accept(request("a", "bread?", "s"))
        again = await gateway.accept(request("a", "bread?", "s"))
        assert isinstance(receipt, Accepted)
        assert isinstance(again, Duplicate)
        assert again.id == receipt.id
        go.set()
        assert answer(await answered(gateway, request("a", "bread?", "s"))) == "two"


async def test_a_failed_turn_is_not_resumed_in_a_new_conversation(tmp_path: Path) -> None:
    model = ScriptedModel([fails(AWAY), says("fresh")])
    async with running(tmp_path, [], model) as gateway:
        await answered(gateway, request("a", "bread?", "s"))
        await gateway.accept(request("n", "/new", "s"))
        assert answer(await answered(gateway, request("a", "bread?", "s"))) == "fresh"
    assert list(model.requests[1].messages) == [UserMessage(text="bread?")]


async def test_an_idempotency_key_with_another_session_or_body_is_a_conflict(
    tmp_path: Path,
) -> None:
    model = ScriptedModel([fails(AWAY)])
    async with running(tmp_path, [], model) as gateway:
        await answered(gateway, request("k", "bread?"))
        for other in (request("k", "milk?"), request("k", "bread?", "s")):
            receipt = await gateway.accept(other)
            assert isinstance(receipt, Duplicate)
            assert not receipt.same
    assert len(model.requests) == 1, "a failed turn runs again for its own request only"


@places
async def test_a_repeated_turn_is_resumed_after_a_crash(tmp_path: Path, session: str) -> None:
    async with running(tmp_path, [], ScriptedModel([fails(AWAY)])) as gateway:
        await answered(gateway, request(session=session))
    hanging = ScriptedModel([hangs()])
    async with running(tmp_path, [], hanging) as gateway:
        await gateway.accept(request(session=session))
        await until(lambda: hanging.requests)
    model = ScriptedModel([says("hello")])
    async with running(tmp_path, [], model) as gateway:
        assert answer(await answered(gateway, request(session=session))) == "hello"
        stored = await rows(gateway._store, "select state, temporary from turns")
        kept = await rows(gateway._store, "select state from inbox")
    assert stored == [("completed", 0)]
    assert kept == [("done",)]
    assert len(model.requests) == 1


async def test_a_failed_turn_runs_again_in_another_process(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([fails(AWAY)])) as gateway:
        await answered(gateway, request())
    async with running(tmp_path, [], ScriptedModel([says("hello")])) as gateway:
        assert answer(await answered(gateway, request())) == "hello"


async def test_a_repeated_command_runs_once_and_its_reply_is_returned_again(tmp_path: Path) -> None:
    async with running(tmp_path, [], ScriptedModel([])) as gateway:
        first = await gateway.accept(request("c", "/status", "s"))
        assert isinstance(first, Accepted)
        with anyio.fail_after(5):
            assert answer(await answered(gateway, request("c", "/status", "s"))) == first.reply
