"""The strict model refuses the same requests as a strict provider, and its answers quote tool
results."""

import base64
import struct
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from hermes.testing.scripted import Plan
from hermes.testing.strict import PNG_SIGNATURE, StrictModel, calls_tools

Json = dict[str, Any]
TALK = (
    calls_tools(("stock", {"item": "tea"}), ("read_file", {"path": "list.txt"})),
    calls_tools(("stock", {"item": "rice"})),
    Plan(text="tea {0}, rice {2}, list: {1}"),
)
SCHEMA = {
    "type": "object",
    "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["item", "count"],
    "additionalProperties": False,
}
PIXELS = base64.b64encode(
    PNG_SIGNATURE + struct.pack(">I4sII", 13, b"IHDR", 3, 2) + b"rest"
).decode()


def tools(*names: str) -> list[Json]:
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in names
    ]


BOTH = tools("stock", "read_file")


def user(content: object = "what is in stock?") -> Json:
    return {"role": "user", "content": content}


def called(**names: str) -> Json:
    made = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for id, name in names.items()
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(id: str, text: str) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": text}


def image(url: str) -> Json:
    return user([{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": url}}])


class Client:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def ask(self, model: StrictModel, *messages: Json, **options: object) -> Json:
        """Sends a request to the model. Returns the message of its answer, or its error."""
        body = {"model": "m", "messages": list(messages), **options}
        url = f"{model.base_url}/chat/completions"
        async with self.session.post(url, json=body) as response:
            answer = await response.json()
        message: Json = answer["choices"][0]["message"] if response.ok else answer["error"]
        return message


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(session)


async def test_a_turn_follows_the_script_and_quotes_its_results(client: Client) -> None:
    async with StrictModel(*TALK) as model:
        first = await client.ask(model, user(), tools=BOTH)
        assert [call["function"]["name"] for call in first["tool_calls"]] == ["stock", "read_file"]
        talk = [user(), called(a="stock", b="read_file"), result("b", "two"), result("a", "one")]
        second = await client.ask(model, *talk, tools=BOTH)
        assert [call["function"]["name"] for call in second["tool_calls"]] == ["stock"]
        talk += [called(c="stock"), result("c", "three")]
        assert (await client.ask(model, *talk, tools=BOTH))["content"] == (
            "tea one, rice three, list: two"
        )
        talk += [called(d="stock"), result("d", "four")]
        assert "no step 3" in (await client.ask(model, *talk, tools=BOTH))["message"]


@pytest.mark.parametrize(
    ("messages", "declared", "reason"),
    [
        ([user()], [], "script calls tools that the request does not declare: ['read_file', 'st"),
        ([user()], ["stock"], "does not declare: ['read_file']"),
        (
            [user(), called(a="look"), result("a", "x"), user()],
            ["stock", "read_file"],
            "history calls tools that the request does not declare: ['look']",
        ),
        ([user(), called(a="stock"), user()], ["stock", "read_file"], "no answer directly after"),
        ([user(), result("a", "x")], ["stock", "read_file"], "answers no open tool call"),
    ],
)
async def test_calls_must_be_declared_and_paired(
    client: Client, messages: list[Json], declared: list[str], reason: str
) -> None:
    async with StrictModel(*TALK) as model:
        options = {"tools": tools(*declared)} if declared else {}
        assert reason in (await client.ask(model, *messages, **options))["message"]


def chosen(name: str) -> Json:
    return {"type": "function", "function": {"name": name}}


@pytest.mark.parametrize(
    ("plan", "choice", "reason"),
    [
        (TALK[1], "none", "forbids it"),
        (TALK[2], "required", "requires one"),
        (TALK[1], chosen("read_file"), "requires a call of 'read_file'"),
        (TALK[1], chosen("stock"), None),
        (TALK[1], "required", None),
        (TALK[2], "none", None),
    ],
)
async def test_a_script_that_breaks_tool_choice_is_refused(
    client: Client, plan: Plan, choice: object, reason: str | None
) -> None:
    async with StrictModel(plan) as model:
        answer = await client.ask(model, user(), tools=BOTH, tool_choice=choice)
    assert (reason or "") in answer.get("message", "")
    assert ("message" in answer) == (reason is not None)


def wants(schema: Json, *, strict: bool = True) -> Json:
    inner = {"name": "answer", "schema": schema, "strict": strict}
    return {"type": "json_schema", "json_schema": inner}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, "plainly"),
        ({"type": "text"}, "plainly"),
        ({"type": "json_object"}, '{"item":"tea"}'),
        (wants(SCHEMA), '{"item":"tea","count":1}'),
    ],
)
async def test_the_answer_is_json_only_if_the_request_asks_for_json(
    client: Client, wanted: Json | None, expected: str
) -> None:
    async with StrictModel(Plan(text="plainly"), facts={"item": "tea"}) as model:
        options = {} if wanted is None else {"response_format": wanted}
        assert (await client.ask(model, user("in JSON"), **options))["content"] == expected


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "json_schema"},
        wants({**SCHEMA, "required": []}),
        {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
        {"type": "yaml"},
    ],
)
async def test_a_schema_that_no_provider_accepts_is_refused(client: Client, wanted: Json) -> None:
    async with StrictModel(Plan(text="plainly")) as model:
        assert "message" in await client.ask(model, user(), response_format=wanted)
        assert model.stats.calls == sum(model.stats.refused.values()) == 1


async def test_the_strict_model_reads_images(client: Client) -> None:
    async with StrictModel(Plan(text="I see {images}.")) as model:
        message = await client.ask(model, image(f"data:image/png;base64,{PIXELS}"))
        assert message["content"] == "I see image/png of 3x2 pixels."
        assert (await client.ask(model, user()))["content"] == "I see no image."


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1/picture.png", "Expected `str` matching regex"),
        ("data:image/png;base64,AAAA", "an image is no PNG"),
        (f"data:image/png;base64,{PIXELS[:-1]}", "Incorrect padding"),
        (f"data:image/jpeg;base64,{PIXELS}", "an image is no PNG"),
        (f"data:image/png,{PIXELS}", "Expected `str` matching regex"),
    ],
)
async def test_an_image_that_can_t_be_read_is_refused(
    client: Client, url: str, reason: str
) -> None:
    async with StrictModel(Plan(text="I see {images}.")) as model:
        assert reason in (await client.ask(model, image(url)))["message"]
