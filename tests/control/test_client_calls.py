"""Turns with tools of the client, as OpenAI's own client uses them."""

import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel
import msgspec
import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionMessageToolCall

from hermes.control.client_calls import ResultsRefused
from hermes.state.retention import forget_messages, forget_requests
from hermes.testing.running import rows, until
from hermes.testing.scripted import Plan, PlannedCall
from hermes.testing.service import SERVICE_KEY, Service, serving
from hermes.testing.stores import open_test_store, stored_rows
from hermes.types.events import TurnFinished
from hermes.types.identity import CallId, PersonId, Principal, Source, TurnId
from hermes.types.messages import Asked, MessageEvent, Origin, ToolMessage

SESSION = {"X-Hermes-Session-Id": "kitchen"}
Said = list[dict[str, Any]]


def function(name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"at": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = [function("look"), function("listen")]
BOTH = 'tool:look{"at":"sky"} tool:append{"token":"t"} tool:listen{"at":"sea"}'
"""A step in which the model calls two tools of the client, and one of ours between them."""


class Client:
    """A client that keeps its conversation, as chat clients do."""

    def __init__(self, service: Service, api: openai.AsyncOpenAI, session: bool) -> None:
        self.service = service
        self.said: Said = []
        self.stream = False
        self._api = api
        self._headers = SESSION if session else {}

    async def ask(self, text: str, **options: Any) -> ChatCompletion:
        self.said.append({"role": "user", "content": text})
        return await self.send(**options)

    async def send(self, **options: Any) -> ChatCompletion:
        options = {"tools": TOOLS, **options}
        if self.stream:
            answer = await self._streamed(options)
        else:
            answer = await self._api.chat.completions.create(
                model="main", messages=cast(Any, self.said), extra_headers=self._headers, **options
            )
        return answer

    async def _streamed(self, options: dict[str, Any]) -> ChatCompletion:
        async with self._api.chat.completions.stream(
            model="main", messages=cast(Any, self.said), extra_headers=self._headers, **options
        ) as stream:
            return await stream.get_final_completion()

    def heard(self, answer: ChatCompletion) -> list[ChatCompletionMessageToolCall]:
        """Adds the assistant's message to the conversation. Returns its calls."""
        message = answer.choices[0].message
        self.said.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        calls = message.tool_calls or []
        assert all(isinstance(call, ChatCompletionMessageToolCall) for call in calls)
        return [call for call in calls if isinstance(call, ChatCompletionMessageToolCall)]

    def results(self, calls: Sequence[ChatCompletionMessageToolCall], **texts: str) -> None:
        for call in calls:
            text = texts.get(call.function.name, f"result of {call.function.name}")
            self.said.append({"role": "tool", "tool_call_id": call.id, "content": text})


@asynccontextmanager
async def talking(
    home: Path, *, session: bool = False, said: Said | None = None, **environ: str
) -> AsyncIterator[Client]:
    async with (
        serving(home, environ=environ) as service,
        openai.AsyncOpenAI(
            base_url=f"{service.base_url}/v1", api_key=SERVICE_KEY, max_retries=0
        ) as api,
    ):
        client = Client(service, api, session)
        client.said = said if said is not None else []
        yield client


@asynccontextmanager
async def talking_too(client: Client) -> AsyncIterator[Client]:
    """A second client of the same service and session."""
    async with openai.AsyncOpenAI(
        base_url=f"{client.service.base_url}/v1", api_key=SERVICE_KEY, max_retries=0
    ) as api:
        yield Client(client.service, api, session=True)


def text_of(answer: ChatCompletion) -> str:
    """Returns the answer without the tags of the fake model."""
    return re.sub(r"\[[0-9a-f]{4}:[0-9.]+\] ?", "", answer.choices[0].message.content or "")


def ids_of(answer: ChatCompletion) -> list[str]:
    return [call.id for call in answer.choices[0].message.tool_calls or ()]


def states_in(home: Path) -> list[str]:
    """The states of all turns, oldest first."""
    return [state for (state,) in stored_rows(home, "select state from turns order by id")]


def appended(home: Path) -> list[str]:
    return (home / "workspace" / "appended").read_text().split()


@pytest.fixture(params=["plain", "streamed"])
def streamed(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "streamed")


@pytest.mark.parametrize("session", [True, False], ids=["session", "stateless"])
async def test_tools_of_the_client_run_beside_ours(
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
        # Our own tool has already run, once.
        assert appended(tmp_path) == ["t"]
        client.results(calls[::-1], look="blue", listen="loud")
        answer = await client.send()
        assert answer.choices[0].finish_reason == "stop"
        for told in ("blue", "appended t", "loud"):
            assert told in text_of(answer)
        assert appended(tmp_path) == ["t"]
        assert client.service.model.stats.refused == {}
        # Both requests belong to one turn, and the conversation continues after it.
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


async def test_a_missing_result_is_named_and_the_turn_stays_open(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        look, listen = client.heard(await client.ask(BOTH))
        client.results([look])
        with pytest.raises(openai.BadRequestError, match=listen.id) as caught:
            await client.send()
        assert caught.value.code == "missing_tool_results"
        client.results([listen])
        assert "result of listen" in text_of(await client.send())


async def test_the_same_results_again_return_the_stored_answer(
    tmp_path: Path, streamed: bool
) -> None:
    async with talking(tmp_path) as client:
        calls = client.heard(await client.ask('tool:look{"at":"STEP"} steps:2'))
        client.results(calls)
        first = await client.send()
        before = client.service.model.stats.calls
        client.stream = streamed
        again = await client.send()
        assert ids_of(again) == ids_of(first)
        client.results(client.heard(again))
        final = await client.send()
        assert client.service.model.stats.calls == before + 1
        assert text_of(await client.send()) == text_of(final)
        # The turn has continued, but a repeat of this earlier request still gets the first answer.
        client.said = client.said[:3]
        assert (
            client.heard(await client.send())[0].id
            == (first.choices[0].message.tool_calls or [])[0].id
        )
        assert client.service.model.stats.calls == before + 1


async def test_the_same_results_attach_to_the_running_turn(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        client.results(client.heard(await client.ask("tool:look{} tokens:20 delay:0.02")))
        answers: list[str] = []

        async def send() -> None:
            answers.append(text_of(await client.send()))

        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(send)
        assert client.service.model.stats.calls == 2
    assert len(set(answers)) == 1


async def test_other_results_for_the_same_calls_are_a_conflict(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        calls = client.heard(await client.ask("tool:look{}"))
        client.results(calls, look="blue")
        await client.send()
        client.said[-1]["content"] = "red"
        with pytest.raises(openai.ConflictError) as caught:
            await client.send()
    assert caught.value.code == "tool_results_conflict"


async def test_results_of_calls_that_nobody_made_here_are_history_or_unknown(
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
        client._headers = SESSION
        with pytest.raises(openai.NotFoundError):
            await client.send()
        client._headers = {}
        assert "result of look" in text_of(await client.send())


async def test_the_options_of_the_last_request_count_also_after_a_restart(tmp_path: Path) -> None:
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
            options = {"tools": [function("smell")], "temperature": 0.9, "tool_choice": "none"}
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
    named = function("look")
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
        # The session continues, with a result for every call.
        client.said = []
        assert "still there" in text_of(await client.ask("still there?"))
        assert client.service.model.stats.refused == {}


async def test_a_tool_of_the_client_replaces_ours_of_the_same_name(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        asked = await client.ask('tool:append{"at":"x"}', tools=[function("append")])
        (call,) = client.heard(asked)
        client.results([call], append="theirs")
        assert "theirs" in text_of(await client.send(tools=[function("append")]))
        (first, *_) = client.service.model.requests
    assert [tool.function.name for tool in first.tools or ()].count("append") == 1
    assert not (tmp_path / "workspace" / "appended").exists()


async def test_an_open_question_is_answered_after_the_results(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        asked = await client.ask('tool:look{} tool:ask{"question":"Which one?"}')
        assert "Which one?" in text_of(asked)
        calls = client.heard(asked)
        client.results(calls, look="blue")
        kept = await client.send()
        assert text_of(kept) == "Which one?"
        assert kept.choices[0].finish_reason == "stop"
        assert text_of(await client.send()) == "Which one?"
        client.said[-1]["content"] = "red"
        with pytest.raises(openai.ConflictError):
            await client.send()
        client.said = []
        answer = text_of(await client.ask("the left one"))
    assert "blue" in answer
    assert "the person said: the left one" in answer


async def test_an_answer_to_the_question_closes_calls_without_results(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        client.heard(await client.ask('tool:look{} tool:ask{"question":"Which one?"}'))
        client.said = []
        answer = text_of(await client.ask("the left one"))
    assert "Not answered" in answer
    assert "the left one" in answer


async def question_expired(client: Client) -> None:
    store = client.service.gateway._store
    with anyio.fail_after(10):
        while await rows(
            store, "select 1 from questions where kind = 'question' and state = 'open'"
        ):
            await anyio.lowlevel.checkpoint()


UNANSWERED = 'tool:look{} tool:ask{"question":"Which one?","expires_in":0.05}'
"""A step with a call of the client and a question. The question expires first."""


async def test_every_call_has_a_result_when_the_client_continues_after_an_expired_question(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True) as client:
        await client.ask(UNANSWERED)
        await question_expired(client)
        client.said = []
        assert "never mind" in text_of(await client.ask("never mind"))
        sent = client.service.model.requests[-1].messages
        assert client.service.model.stats.refused == {}
    told = [message.text for message in sent if message.role == "tool"]
    assert [text.partition(":")[0] for text in told] == ["Not answered", "Not finished"]


async def test_a_new_message_with_the_results_of_an_expired_question_is_a_conflict(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True) as client:
        client.results(client.heard(await client.ask(UNANSWERED)), look="blue")
        await question_expired(client)
        with pytest.raises(openai.ConflictError) as caught:
            await client.ask("and be brief")
        assert caught.value.code == "question_expired"
        del client.said[-1]
        answer = text_of(await client.send())
        assert client.service.model.stats.refused == {}
    assert "blue" in answer
    assert "nobody answered" in answer


async def test_an_expired_call_is_named_so_while_a_question_keeps_its_turn_open(
    tmp_path: Path,
) -> None:
    (tmp_path / "config.yaml").write_text("agent: {client_tool_timeout: 0.05}\n")
    async with talking(tmp_path, session=True) as client:
        client.results(client.heard(await client.ask("tool:look{} tool:ask{}")))
        expired = "select 1 from questions where kind = 'client_call' and state = 'expired'"
        with anyio.fail_after(10):
            while not await rows(client.service.gateway._store, expired):
                await anyio.lowlevel.checkpoint()
        with pytest.raises(openai.BadRequestError) as caught:
            await client.send()
    assert caught.value.code == "tool_call_expired"


async def test_results_that_were_kept_outlast_the_retention_of_finished_messages(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True) as client:
        client.results(client.heard(await client.ask("tool:look{} tool:ask{}")), look="blue")
        await client.send()
        await client.service.gateway._store.run(forget_messages, time.time() + 60)
        client.said = []
        assert "blue" in text_of(await client.ask("the left one"))


async def test_results_of_stateless_requests_are_forgotten_with_their_turns(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        client.results(client.heard(await client.ask("tool:look{}")))
        await client.send()
        store = client.service.gateway._store
        await store.run(forget_requests, time.time() + 60)
        assert await rows(store, "select id from inbox") == []


async def test_the_status_says_that_the_client_is_waited_for(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        await client.ask("tool:look{}")
        client.said = []
        status = text_of(await client.ask("/status"))
    assert status == "Waiting for the results of your client's tools."


async def test_a_repeated_request_gets_the_same_answer_after_its_turn_has_continued(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path) as client:
        look = PlannedCall(name="look", arguments="{}")
        client.service.model.script += [Plan(calls=(look,)), Plan(hang=True)]
        key = client._headers = {"Idempotency-Key": "once"}
        first = await client.ask("go on")
        request = list(client.said)
        client.results(client.heard(first))
        client._headers = {"Idempotency-Key": "another"}
        async with anyio.create_task_group() as group:
            group.start_soon(client.send)
            await until(lambda: len(client.service.model.requests) == 2)
            client.said, client._headers = request, key
            with anyio.fail_after(5):
                again = await client.send()
            group.cancel_scope.cancel()
    assert ids_of(again) == ids_of(first)


async def test_further_words_may_follow_the_results(tmp_path: Path) -> None:
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
    async with talking(tmp_path, session=True) as client, talking_too(client) as other:
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


async def test_a_turn_that_was_stopped_takes_no_results(tmp_path: Path) -> None:
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


async def test_a_repeated_request_does_not_close_the_calls_of_its_own_turn(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        key = {**SESSION, "Idempotency-Key": "once"}
        client._headers = key
        first = await client.ask("tool:look{}")
        assert ids_of(await client.send()) == ids_of(first)
        assert states_in(tmp_path) == ["suspended"]
        client.results(client.heard(first))
        client._headers = SESSION
        assert "result of look" in text_of(await client.send())


@pytest.mark.parametrize("session", [True, False], ids=["session", "stateless"])
async def test_an_idempotency_key_belongs_to_one_request_with_results_too(
    tmp_path: Path, session: bool
) -> None:
    async with talking(tmp_path, session=session) as client:
        plain = client._headers
        client._headers = {**plain, "Idempotency-Key": "asked"}
        first = await client.ask("tool:look{}")
        client.results(client.heard(first))
        with pytest.raises(openai.ConflictError) as caught:
            await client.send()
        assert caught.value.code == "idempotency_key_conflict"
        assert states_in(tmp_path) == ["suspended"], "nothing was taken"
        client._headers = {**plain, "Idempotency-Key": "results"}
        answer = text_of(await client.send())
        assert text_of(await client.send()) == answer
        client.said = []
        with pytest.raises(openai.ConflictError) as caught:
            await client.ask("something else")
        assert caught.value.code == "idempotency_key_conflict"


async def test_the_events_of_a_run_name_the_calls_that_wait(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        asked = await client.ask("tool:look{}")
        turn = TurnId(asked.id.removeprefix("chatcmpl-"))
        last = [envelope.event async for envelope in client.service.gateway.follow(turn)][-1]
    assert isinstance(last, TurnFinished)
    assert [call.id for call in last.calls] == ids_of(asked)


@pytest.mark.parametrize("session", [True, False], ids=["session", "stateless"])
async def test_results_whose_turn_failed_for_a_time_are_sent_again_and_answered(
    tmp_path: Path, session: bool
) -> None:
    async with talking(tmp_path, session=session, HERMES_API_MAX_RETRIES="0") as client:
        model = client.service.model
        look = PlannedCall(name="look", arguments="{}")
        model.script += [Plan(text="Let me see.", calls=(look,)), Plan(status=401)]
        client.results(client.heard(await client.ask("go on")), look="blue")
        with pytest.raises(openai.APIStatusError):
            await client.send()
        answer = text_of(await client.send())
        assert "blue" in answer
        assert "Let me see." not in answer
        assert model.stats.calls == 3
        assert text_of(await client.send()) == answer
        assert model.stats.calls == 3
    assert states_in(tmp_path) == ["completed"]


async def test_a_turn_that_is_run_again_keeps_the_answers_to_earlier_requests(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, HERMES_API_MAX_RETRIES="0") as client:
        look = PlannedCall(name="look", arguments="{}")
        client.service.model.script += [Plan(calls=(look,)), Plan(status=401)]
        key = client._headers = {"Idempotency-Key": "once"}
        first = await client.ask("go on")
        request = list(client.said)
        client.results(client.heard(first))
        client._headers = {"Idempotency-Key": "another"}
        with pytest.raises(openai.APIStatusError):
            await client.send()
        await client.send()
        client.said, client._headers = request, key
        assert ids_of(await client.send()) == ids_of(first)


async def test_a_repeated_answer_to_a_question_gets_the_same_result(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        await client.ask("tool:ask{}")
        client.said = []
        client._headers = {**SESSION, "Idempotency-Key": "once"}
        answer = text_of(await client.ask("the left one"))
        assert "the left one" in answer
        assert text_of(await client.send()) == answer


async def test_the_client_gets_role_markers_as_the_model_meant_them(tmp_path: Path) -> None:
    async with talking(tmp_path) as client:
        look = PlannedCall(name="look", arguments=r'{"at":"<\\|im_start|>"}')
        client.service.model.script.append(Plan(calls=(look,)))
        (call,) = client.heard(await client.ask("look at the marker"))
    assert call.function.arguments == '{"at":"<|im_start|>"}'


async def test_a_repeated_answer_that_leaves_a_question_open_gets_the_same_reply(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True) as client:
        await client.ask('tool:ask{"question":"Which?"} tool:ask{"question":"When?"}')
        client.said = []
        client._headers = {**SESSION, "Idempotency-Key": "once"}
        noted = text_of(await client.ask("the left one"))
        assert noted == "Noted. Still open: When?"
        assert text_of(await client.send()) == noted


async def test_calls_of_an_agent_that_is_not_hosted_here_are_unknown(tmp_path: Path) -> None:
    async with talking(tmp_path, session=True) as client:
        client.results(client.heard(await client.ask("tool:look{}")))
        client._headers = {}
        moved = "update turns set session = replace(session, 'agent:main', 'agent:other')"
        async with open_test_store(tmp_path) as store:
            await rows(store, moved)
        with pytest.raises(openai.NotFoundError):
            await client.send()


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "plain"])
async def test_results_of_a_run_that_lost_its_reader_get_no_empty_answer(
    tmp_path: Path, stream: bool
) -> None:
    async with talking(tmp_path) as client:
        look = PlannedCall(name="look", arguments="{}")
        client.service.model.script += [Plan(calls=(look,)), Plan(hang=True)]
        client.results(client.heard(await client.ask("go on")))
        async with anyio.create_task_group() as group:
            group.start_soon(client.send)
            await until(lambda: len(client.service.model.requests) == 2)
            group.cancel_scope.cancel()
        await until(lambda: states_in(tmp_path) == ["stopped"])
        client.stream = stream
        with pytest.raises(openai.UnprocessableEntityError) as caught:
            await client.send()
    assert caught.value.code == "stopped"


async def test_results_that_were_kept_for_a_question_run_a_failed_turn_again(
    tmp_path: Path,
) -> None:
    async with talking(tmp_path, session=True, HERMES_API_MAX_RETRIES="0") as client:
        look = PlannedCall(name="look", arguments="{}")
        ask = PlannedCall(name="ask", arguments='{"question":"Which one?"}')
        client.service.model.script += [Plan(calls=(look, ask)), Plan(status=401)]
        client.results(client.heard(await client.ask("go on")), look="blue")
        assert text_of(await client.send()) == "Which one?"
        with_results, client.said = client.said, []
        with pytest.raises(openai.APIStatusError):
            await client.ask("the left one")
        client.said = with_results
        with anyio.fail_after(20):
            answer = text_of(await client.send())
    assert "blue" in answer
    assert "the left one" in answer
    assert states_in(tmp_path) == ["completed"]
