"""The fake model server follows the rules of real servers."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import anyio
import msgspec
import pytest

from hermes.testing.model import FakeModel
from hermes.testing.scripted import (
    Plan,
    PlannedCall,
    ScriptedModel,
    calls,
    calls_in,
    hangs,
    is_complete,
    mixes_calls,
    plan_of,
    says,
)
from hermes.types.events import AgentEvent
from hermes.types.messages import UserMessage
from hermes.types.models import ModelRequest
from hermes.types.profile import ModelChoice

Json = dict[str, Any]


class Client:
    def __init__(self, session: aiohttp.ClientSession, base_url: str) -> None:
        self.session = session
        self.base_url = base_url

    async def ask(self, *messages: Json, **options: object) -> tuple[int, Json]:
        body = {"model": "m", "messages": list(messages), **options}
        async with self.session.post(f"{self.base_url}/chat/completions", json=body) as response:
            return response.status, await response.json()

    async def said(self, text: str) -> str:
        status, body = await self.ask(user(text))
        assert status == 200, body
        content = body["choices"][0]["message"]["content"]
        assert isinstance(content, str)
        return content

    async def get(self, path: str) -> Any:
        async with self.session.get(self.base_url.removesuffix("/v1") + path) as response:
            return await response.json()


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def asked(*ids: str, arguments: object = "{}") -> Json:
    made = [
        {"id": name, "type": "function", "function": {"name": "look", "arguments": arguments}}
        for name in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(name: str, text: str = "42") -> Json:
    return {"role": "tool", "tool_call_id": name, "content": text}


@pytest.fixture
async def model() -> AsyncIterator[FakeModel]:
    async with FakeModel() as model:
        yield model


@pytest.fixture
async def client(model: FakeModel) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(session, model.base_url)


async def test_an_answer_echoes_the_message_and_is_unique_for_its_call(client: Client) -> None:
    first, second = await client.said("hello world"), await client.said("hello world")
    assert "you said:" in first
    assert "hello" in first
    for text in (first, second):
        assert len(calls_in(text)) == 1
        assert is_complete(text)
    assert mixes_calls(first + second)
    assert not is_complete(first + second)


async def test_an_answer_that_was_cut_or_doubled_is_not_complete(client: Client) -> None:
    words = (await client.said("hello tokens:30")).split()
    assert len(words) == 30
    assert is_complete(" ".join(words))
    assert not any(is_complete(" ".join(words[:end])) for end in range(30))
    assert not is_complete(" ".join([*words[:7], *words[6:]]))
    assert not is_complete(" ".join([*words[:7], *words[8:]]))


async def test_a_quoted_answer_does_not_look_mixed(client: Client) -> None:
    quoted = await client.said("you said: " + await client.said("hi"))
    assert len(calls_in(quoted)) == 1


async def test_tools_are_called_once_and_their_results_are_quoted(client: Client) -> None:
    text = 'please tool:look{"at": "the sky"} tool:listen'
    _, body = await client.ask(user(text))
    made = body["choices"][0]["message"]["tool_calls"]
    assert [call["function"] for call in made] == [
        {"name": "look", "arguments": '{"at": "the sky"}'},
        {"name": "listen", "arguments": "{}"},
    ]
    _, body = await client.ask(
        user(text), asked("a", "b"), result("a", "it is blue"), result("b", "birds")
    )
    content = body["choices"][0]["message"]["content"]
    assert "blue" in content
    assert "birds" in content
    assert is_complete(content)


async def test_a_directive_can_request_several_steps(client: Client) -> None:
    talk = [user("tool:look steps:2")]
    for step in ("a", "b"):
        _, body = await client.ask(*talk)
        assert body["choices"][0]["finish_reason"] == "tool_calls"
        talk += [asked(step), result(step)]
    _, body = await client.ask(*talk)
    assert body["choices"][0]["finish_reason"] == "stop"


async def test_failures_happen_as_requested(client: Client, model: FakeModel) -> None:
    assert [(await client.ask(user("fail-first:2")))[0] for _ in range(3)] == [500, 500, 200]
    assert (await client.ask(user("status:429 retry-after:7")))[0] == 429
    with pytest.raises(aiohttp.ClientError):
        await client.ask(user("cut-first:3"))
    assert (await client.ask(user("cut-first:3")))[0] == 200
    stats = model.stats
    assert (stats.failed, stats.cut, stats.answered, stats.refused) == (3, 1, 2, {})


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "length >= 1"),
        ([{"role": "robot", "content": "x"}], "Invalid enum value 'robot'"),
        ([{"role": "assistant", "content": "x"}, user("y")], "start with a user"),
        ([user("x"), {"role": "assistant", "content": "y"}], "must not be from the assistant"),
        ([user("x"), asked("a")], "no answer directly after"),
        ([user("x"), asked("a", "b"), result("a")], "no answer directly after"),
        ([user("x"), asked("a"), user("y"), result("a")], "no answer directly after"),
        ([user("x"), result("a")], "answers no open tool call"),
        ([user("x"), asked("a"), result("a"), result("a")], "answers no open tool call"),
        ([user("x"), asked("a", "a"), result("a")], "used twice"),
        ([user("x"), asked("a"), result("a"), asked("a"), result("a")], "used twice"),
        ([user("x"), asked("a", arguments="{"), result("a")], "not JSON"),
        ([user("x"), asked("a", arguments={}), result("a")], "Expected `str`"),
        ([user("x"), {"role": "assistant", "content": None}, user("y")], "has no content"),
    ],
)
async def test_requests_that_real_servers_refuse_are_refused_and_counted(
    client: Client, model: FakeModel, messages: list[Json], reason: str
) -> None:
    status, body = await client.ask(*messages)
    assert status == 400
    assert reason in body["error"]["message"]
    assert sum(model.stats.refused.values()) == 1
    assert (await client.get("/_stats"))["refused"] == model.stats.refused


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"parameters": {}}},
        {"type": "function", "function": {"name": "look"}},
        {"type": "function", "function": {"name": "look", "parameters": "none"}},
        {"type": "function", "function": {"name": "look at", "parameters": {}}},
    ],
)
async def test_a_tool_without_name_or_parameters_is_refused(client: Client, tool: Json) -> None:
    assert (await client.ask(user("hi"), tools=[tool]))[0] == 400


async def test_a_missing_model_is_refused(client: Client) -> None:
    assert (await client.ask(user("hi"), model=""))[0] == 400


async def test_a_wrong_key_is_refused() -> None:
    async with FakeModel(key="right") as model, aiohttp.ClientSession() as session:
        client = Client(session, model.base_url)
        assert (await client.ask(user("hi")))[0] == 401
        session.headers["Authorization"] = "Bearer right"
        assert (await client.ask(user("hi")))[0] == 200


async def test_usage_is_streamed_only_if_it_is_requested(client: Client) -> None:
    async def streamed(**options: object) -> str:
        body = {"model": "m", "messages": [user("hi")], "stream": True, **options}
        url = f"{client.base_url}/chat/completions"
        async with client.session.post(url, json=body) as response:
            return await response.text()

    assert "usage" not in await streamed()
    assert "usage" in await streamed(stream_options={"include_usage": True})


async def test_the_behaviour_can_be_changed_at_run_time(client: Client) -> None:
    url = client.base_url.removesuffix("/v1") + "/_ctl"
    wanted = {"default": {"tokens": 3}, "script": [{"text": "word for\nword"}]}
    async with client.session.post(url, json=wanted) as response:
        assert response.status == 200
    assert await client.said("hi") == "word for\nword"
    assert len((await client.said("hi")).split()) == 3
    async with client.session.post(url, json={"nonsense": 1}) as response:
        assert response.status == 400


async def test_received_requests_can_be_read_back(client: Client, model: FakeModel) -> None:
    await client.said("one")
    await client.said("two")
    assert (await client.get("/_last"))["messages"] == [user("two")]
    assert [body["messages"][0]["content"] for body in await client.get("/_requests")] == [
        "one",
        "two",
    ]
    assert [request.said for request in model.requests] == ["one", "two"]
    assert (await client.get("/v1/models"))["data"][0]["id"] == "fake"


def test_directives_inside_of_arguments_are_ignored() -> None:
    plan = plan_of('tool:run{"text": "please hang tokens:5"} delay:0.5 cut:2', Plan())
    assert plan == Plan(
        calls=(PlannedCall("run", '{"text": "please hang tokens:5"}'),), delay=0.5, cut=2
    )
    assert plan_of("nothing: special", Plan(tokens=4)) == Plan(tokens=4)
    assert plan_of("tool:run{broken on", Plan()).calls == (PlannedCall("run", "{broken"),)


async def test_a_script_is_followed_in_process() -> None:
    choice = ModelChoice(provider="p", model="m", base_url="")
    request = ModelRequest(choice=choice, system="", messages=[UserMessage(text="x")], step="t_1")
    events: list[AgentEvent] = []
    model = ScriptedModel([says("a b"), calls(("look", {"at": 1}), text="well"), hangs()])
    assert (await model.complete(request, events.append)).text == "a b"
    (call,) = (await model.complete(request, events.append)).calls
    assert (call.id, msgspec.json.decode(call.arguments)) == ("t_1_0", {"at": 1})
    with anyio.move_on_after(0) as scope:
        await model.complete(request, events.append)
    assert scope.cancelled_caught
    assert model.requests == [request] * 3
