"""A turn can call tools of an API client. The tests use OpenAI's own client."""

import time
from pathlib import Path

import anyio
import msgspec
import openai
import pytest

from hermes.control.client_calls import ResultsRefused
from hermes.state.retention import forget_requests
from hermes.testing.openai_client import KITCHEN
from hermes.testing.running import rows, until
from hermes.testing.scripted import Plan, PlannedCall
from hermes.testing.stores import open_test_store
from hermes.testing.tool_client import (
    BOTH,
    client_tool,
    ids_of,
    second_client,
    states_in,
    talking,
    text_of,
)
from hermes.types.events import TurnFinished
from hermes.types.identity import CallId, PersonId, Principal, Source, TurnId
from hermes.types.messages import Asked, MessageEvent, Origin, ToolMessage


def appended(home: Path) -> list[str]:
    return (home / "workspace" / "appended").read_text().split()


@pytest.fixture(params=["plain", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "streamed")


@pytest.mark.parametrize("session", [True, False], ids=["session", "stateless"])
async def test_client_tools_and_tools_of_the_agent_run_in_one_turn(
    tmp_path: Path, session: bool, streamed: bool
) -> None:
    async with talking(tmp_path, session=session) as client:
        client.stream = streamed
        asked = await client.ask(BOTH)
        assert asked.choices[0].finish_reason == "tool_calls"
        calls = client.heard(asked)
        assert [(call.function.name, call.function.arguments) for call in calls] == [
            ("look", '{"at":"sky"}'),
            ("listen", '{"at":"sea"}'),
        ]
        # The agent's own tool has run once, before the client received the calls of the client's
        # tools.
        assert appended(tmp_path) == ["t"]
        client.results(calls[::-1], look="blue", listen="loud")
        answer = await client.send()
        assert answer.choices[0].finish_reason == "stop"
        for told in ("blue", "appended t", "loud"):
            assert told in text_of(answer)
        assert appended(tmp_path) == ["t"]
        assert client.service.model.stats.refused == {}
        # The question and the results belong to one turn. The next message begins a second turn.
        client.heard(answer)
        assert "tool said" not in text_of(await client.ask("thanks"))
        turns = await rows(client.service.gateway._store, "select state from turns")
    assert turns == [("completed",)] * 2


async def test_a_turn_may_call_tools_of_the_client_several_times(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        answer = await client.ask('tool:look{"at":"STEP"} steps:3')
        for step in range(3):
            (call,) = client.heard(answer)
            assert call.function.arguments == f'{{"at":"{step}"}}'
            client.results([call], look=f"seen {step}")
            answer = await client.send()
    assert [f"seen {step}" in text_of(answer) for step in range(3)] == [True] * 3


@pytest.mark.parametrize("session", [True, False], ids=["session", "stateless"])
async def test_results_resume_the_turn_after_a_restart(tmp_path: Path, session: bool) -> None:
    async with talking(tmp_path, session=session) as client:
        client.results(client.heard(await client.ask(BOTH)), look="blue", listen="loud")
    async with talking(tmp_path, session=session, said=client.said) as client:
        answer = await client.send()
        assert client.service.model.stats.refused == {}
    assert "blue" in text_of(answer)
    assert "appended t" in text_of(answer)
    assert appended(tmp_path) == ["t"]


async def test_the_error_names_a_missing_result_and_the_turn_stays_open(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        look, listen = client.heard(await client.ask(BOTH))
        client.results([look])
        with pytest.raises(openai.BadRequestError, match=listen.id) as caught:
            await client.send()
        assert caught.value.code == "missing_tool_results"
        client.results([listen])
        assert "result of listen" in text_of(await client.send())


async def test_results_of_calls_that_this_gateway_did_not_make_are_history_or_unknown(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as client:
        (call,) = client.heard(await client.ask("tool:look{}"))
        client.results([call], look="blue")
        mine = list(client.said)
        renamed = [
            {**one, "tool_call_id": "call_x"} if "tool_call_id" in one else one for one in mine
        ]
        renamed[1] = {**mine[1], "tool_calls": [{**mine[1]["tool_calls"][0], "id": "call_x"}]}
        client.said = renamed
        assert "blue" in text_of(await client.send())
        turns = await rows(client.service.gateway._store, "select count(*) from turns")
        assert turns == [(2,)]
        client.said = [{**mine[2], "tool_call_id": f"{'0' * 21}_0_0"}]
        with pytest.raises(openai.NotFoundError) as caught:
            await client.send()
        assert caught.value.code == "unknown_tool_call"


async def test_results_must_come_in_the_session_of_their_calls(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        client.results(client.heard(await client.ask("tool:look{}")))
        client.headers = KITCHEN
        with pytest.raises(openai.NotFoundError):
            await client.send()
        client.headers = {}
        assert "result of look" in text_of(await client.send())


async def test_the_options_of_the_last_request_apply_even_after_a_restart(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        look = PlannedCall(name="look", arguments="{}")
        client.service.model.script += [Plan(calls=(look,)), Plan(hang=True)]
        asked = await client.ask(
            "go on", temperature=0.1, tool_choice="required", parallel_tool_calls=False
        )
        (first,) = client.service.model.requests
        assert first.tool_choice == "required"
        client.results(client.heard(asked))
        async with anyio.create_task_group() as group:
            options = {"tools": [client_tool("smell")], "temperature": 0.9, "tool_choice": "none"}
            group.start_soon(lambda: client.send(**options))
            await until(lambda: len(client.service.model.requests) == 2)
            group.cancel_scope.cancel()
    async with talking(tmp_path, session=True) as client:
        await until(lambda: len(client.service.model.requests) >= 1)
        resumed = client.service.model.requests[-1]
    assert "smell" in resumed.declared
    assert "look" not in resumed.declared
    assert resumed.temperature == 0.9
    assert resumed.tool_choice == "none"
    assert resumed.parallel_tool_calls is None


async def test_a_tool_choice_binds_only_the_first_model_call_after_a_request(
    tmp_path: Path,
) -> None:
    named = client_tool("look")
    del named["function"]["parameters"]
    async with talking(tmp_path) as client:
        await client.ask('tool:append{"token":"a"}', tool_choice=named, parallel_tool_calls=True)
        first, second = client.service.model.requests
    assert msgspec.to_builtins(first.tool_choice) == named
    assert second.tool_choice is None
    assert [one.parallel_tool_calls for one in (first, second)] == [True, True]


async def test_a_session_request_without_results_closes_the_calls(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        calls = client.heard(await client.ask(BOTH))
        client.said = []
        answer = await client.ask("never mind")
        assert "never mind" in text_of(answer)
        sent = client.service.model.requests[-1].messages
        told = [message.text for message in sent if message.role == "tool"]
        assert [text.startswith("Not answered") for text in told] == [True, False, True]
        client.said = []
        client.results(calls)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.send()
        assert caught.value.code == "tool_call_closed"
        assert client.service.model.stats.refused == {}


async def test_calls_expire_and_late_results_are_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("agent: {client_tool_timeout: 0.05}\n")
    async with talking(tmp_path, session=True) as client:
        calls = client.heard(await client.ask("tool:look{}"))
        await until(lambda: states_in(tmp_path) == ["failed"])
        assert client.service.model.stats.calls == 1
        client.results(calls)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.send()
        assert caught.value.code == "tool_call_expired"
        # The session can continue: the history has a result for the expired call, so the model
        # accepts the history.
        client.said = []
        assert "still there" in text_of(await client.ask("still there?"))
        assert client.service.model.stats.refused == {}


async def test_a_client_tool_replaces_an_agents_tool_with_the_same_name(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        asked = await client.ask('tool:append{"at":"x"}', tools=[client_tool("append")])
        (call,) = client.heard(asked)
        client.results([call], append="theirs")
        assert "theirs" in text_of(await client.send(tools=[client_tool("append")]))
        (first, *_) = client.service.model.requests
    assert [tool.function.name for tool in first.tools or ()].count("append") == 1
    assert not (tmp_path / "workspace" / "appended").exists()


async def test_results_of_stateless_requests_are_forgotten_with_their_turns(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        client.results(client.heard(await client.ask("tool:look{}")))
        await client.send()
        store = client.service.gateway._store
        await store.run(forget_requests, time.time() + 60)
        assert await rows(store, "select id from inbox") == []


async def test_the_status_says_that_the_turn_waits_for_the_client(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        await client.ask("tool:look{}")
        client.said = []
        status = text_of(await client.ask("/status"))
    assert status == "Waiting for the results of your client's tools."


async def test_further_messages_may_follow_the_results(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        client.results(client.heard(await client.ask("tool:look{}")))
        answer = await client.ask("and be brief")
        sent = client.service.model.requests[-1].messages
    assert "and be brief" in text_of(answer)
    assert [message.role for message in sent][-4:] == ["user", "assistant", "tool", "user"]


async def test_arguments_that_are_no_json_go_back_to_the_model(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        answer = await client.ask("tool:look{broken}")
    assert answer.choices[0].finish_reason == "stop"
    assert "not a JSON object" in text_of(answer)


async def test_a_message_that_was_queued_before_waits_for_the_results(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client, second_client(client) as other:
        answers: list[str] = []

        async def queue() -> None:
            await until(lambda: client.service.model.stats.calls == 1)
            answers.append(text_of(await other.ask("and then?")))

        async with anyio.create_task_group() as group:
            group.start_soon(queue)
            asked = await client.ask("tool:look{} ttft:0.3")
            client.results(client.heard(asked), look="blue")
            assert "blue" in text_of(await client.send())
    assert "and then?" in answers[0]


async def test_calls_of_another_principal_are_unknown(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        (call,) = client.heard(await client.ask("tool:look{}"))
        result = ToolMessage(call=CallId(call.id), text="forged")
        source = Source(
            platform="api", account="mallory", chat_kind="private", chat_id="x", user_id="mallory"
        )
        principal = Principal(name="mallory", person=PersonId("mallory"))
        event = MessageEvent(
            dedupe_key="forged",
            source=source,
            origin=Origin(trigger="api", principal=principal),
            received_at=0.0,
            body=Asked(messages=(), results=(result,)),
        )
        with pytest.raises(ResultsRefused) as caught:
            await client.service.gateway.accept(event)
        assert (caught.value.status, caught.value.code) == (404, "unknown_tool_call")
        client.results([call], look="blue")
        assert "blue" in text_of(await client.send())


async def test_results_for_a_turn_that_was_stopped_are_refused(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        calls = client.heard(await client.ask("tool:look{}"))
        client.said = []
        await client.ask("/stop")
        await until(lambda: states_in(tmp_path) == ["stopped"])
        client.results(calls)
        with pytest.raises(openai.BadRequestError) as caught:
            await client.send()
        assert caught.value.code == "tool_call_closed"
        client.said = []
        assert "hello again" in text_of(await client.ask("hello again"))
        assert client.service.model.stats.refused == {}


async def test_the_events_of_a_run_name_the_calls_that_wait(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        asked = await client.ask("tool:look{}")
        turn = TurnId(asked.id.removeprefix("chatcmpl-"))
        last = [envelope.event async for envelope in client.service.gateway.follow(turn)][-1]
    assert isinstance(last, TurnFinished)
    assert [call.id for call in last.calls] == ids_of(asked)


async def test_the_client_gets_role_markers_as_the_model_meant_them(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        look = PlannedCall(name="look", arguments=r'{"at":"<\\|im_start|>"}')
        client.service.model.script.append(Plan(calls=(look,)))
        (call,) = client.heard(await client.ask("look at the marker"))
    assert call.function.arguments == '{"at":"<|im_start|>"}'


async def test_calls_of_an_agent_that_is_not_hosted_here_are_unknown(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        client.results(client.heard(await client.ask("tool:look{}")))
        client.headers = {}
        moved = "update turns set session = replace(session, 'agent:main', 'agent:other')"
        async with open_test_store(tmp_path) as store:
            await rows(store, moved)
        with pytest.raises(openai.NotFoundError):
            await client.send()
