"""The field `response_format` is accepted in the form that OpenAI's own client sends, and invalid
values are refused."""

import json
from pathlib import Path
from typing import Any, Literal

import anyio
import msgspec
import openai
import pytest
from pydantic import BaseModel

from hermes.entry.http.errors import ApiError
from hermes.entry.http.response_format import RequestedFormat, response_format
from hermes.testing.openai_client import KITCHEN, client_of, user_says
from hermes.testing.running import until
from hermes.testing.scripted import Plan, PlannedCall, is_complete
from hermes.testing.service import serving
from hermes.types.messages import ResponseFormat


class Ingredient(BaseModel):
    name: str
    grams: int


class Recipe(BaseModel):
    title: str
    kind: Literal["cake", "soup"]
    ingredients: list[Ingredient]


def schema() -> Any:
    definition = {"name": "recipe", "schema": Recipe.model_json_schema()}
    return {"type": "json_schema", "json_schema": definition}


async def created(client: openai.AsyncOpenAI, text: str) -> str:
    """Asks for an answer that conforms to the schema of `Recipe`, and returns its text."""
    answer = await client.chat.completions.create(
        model="main", messages=user_says(text), response_format=schema(), extra_headers=KITCHEN
    )
    return answer.choices[0].message.content or ""


async def streamed(client: openai.AsyncOpenAI, text: str, said: list[str]) -> None:
    """Adds the received pieces of the answer to `said`."""
    stream = await client.chat.completions.create(
        model="main",
        messages=user_says(text),
        response_format=schema(),
        extra_headers=KITCHEN,
        stream=True,
    )
    async for chunk in stream:
        said += [choice.delta.content or "" for choice in chunk.choices]


async def test_the_client_method_parse_returns_an_object_of_the_given_class(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        answer = await client.chat.completions.parse(
            model="main", messages=user_says("a cake"), response_format=Recipe
        )
        (sent,) = service.model.requests
    parsed = answer.choices[0].message.parsed
    assert isinstance(parsed, Recipe)
    assert parsed.kind == "cake"
    assert sent.response_format is not None
    assert sent.response_format.json_schema is not None
    assert sent.response_format.json_schema.strict
    assert sent.response_format.json_schema.name == "Recipe"


async def test_without_a_format_the_answer_is_plain_text(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        raw = await client.chat.completions.with_raw_response.create(
            model="main", messages=user_says("a cake"), response_format={"type": "text"}
        )
    assert "x-hermes-ignored" not in raw.headers
    assert is_complete(raw.parse().choices[0].message.content or "")


async def test_a_streamed_answer_is_sent_when_it_is_complete(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        service.model.script.append(Plan(text="no JSON yet"))
        async with client.chat.completions.stream(
            model="main", messages=user_says("a cake"), response_format=Recipe
        ) as stream:
            deltas = [event.delta async for event in stream if event.type == "content.delta"]
            final = await stream.get_final_completion()
    assert isinstance(final.choices[0].message.parsed, Recipe)
    assert len([delta for delta in deltas if delta]) == 1


async def test_the_type_json_object_accepts_any_object(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        answer = await client.chat.completions.create(
            model="main", messages=user_says("hello"), response_format={"type": "json_object"}
        )
        (sent,) = service.model.requests
    assert json.loads(answer.choices[0].message.content or "") == {"said": "hello"}
    assert sent.wants_json


@pytest.mark.parametrize("stream", [True, False])
async def test_text_before_a_tool_call_is_not_part_of_the_json(
    tmp_path: Path, stream: bool
) -> None:
    step = Plan(text="Let me see.", calls=(PlannedCall("slow", '{"seconds":0}'),))
    said: list[str] = []
    async with serving(tmp_path) as service, client_of(service) as client:
        service.model.script.append(step)
        if stream:
            await streamed(client, "a cake", said)
        else:
            said.append(await created(client, "a cake"))
        assert service.model.stats.calls == 2
    Recipe.model_validate_json("".join(said))


async def test_an_answer_that_can_not_be_repaired_is_an_error(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        service.model.default = Plan(text='{"title": "half')
        with pytest.raises(openai.InternalServerError) as caught:
            await client.chat.completions.parse(
                model="main", messages=user_says("a cake"), response_format=Recipe
            )
        assert service.model.stats.calls == 2
    assert (caught.value.status_code, caught.value.code) == (502, "invalid_structured_output")


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (Plan(text='{"title": "half'), "invalid_structured_output"),
        (Plan(text='{"title": "half', finish="length"), "output_truncated"),
        (Plan(text="I won't.", finish="content_filter"), "refused"),
    ],
)
async def test_a_stream_never_contains_incomplete_json(
    tmp_path: Path, plan: Plan, code: str
) -> None:
    said: list[str] = []
    async with serving(tmp_path) as service, client_of(service) as client:
        service.model.default = plan
        with pytest.raises(openai.APIError) as caught:
            await streamed(client, "a cake", said)
    assert caught.value.code == code
    assert "".join(said) == ""


@pytest.mark.parametrize("stream", [True, False])
async def test_a_turn_that_is_stopped_has_no_json(tmp_path: Path, stream: bool) -> None:
    codes: list[str | None] = []

    async def ask(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.APIError) as caught:
            await (streamed(client, "hang", []) if stream else created(client, "hang"))
        codes.append(caught.value.code)

    async with serving(tmp_path) as service, client_of(service) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, client)
            await until(lambda: service.model.stats.open)
            await client.chat.completions.create(
                model="main", messages=user_says("/stop"), extra_headers=KITCHEN
            )
    assert codes == ["stopped"]


async def test_the_format_is_stored_with_the_turn(tmp_path: Path) -> None:
    """Another process may resume the turn after a question, so the format must be stored."""
    async with serving(tmp_path) as service, client_of(service) as client:
        asked = await created(client, 'tool:ask{"question":"Sweet?"}')
    assert "Sweet?" in asked
    async with serving(tmp_path) as service, client_of(service) as client:
        answer = await client.chat.completions.create(
            model="main", messages=user_says("yes"), extra_headers=KITCHEN
        )
    Recipe.model_validate_json(answer.choices[0].message.content or "")


async def test_a_schema_is_passed_on_word_for_word() -> None:
    text = '{"type": "object",  "title": "Ä" }'
    body = f'{{"type":"json_schema","json_schema":{{"name":"x","schema":{text}}}}}'
    found = await response_format(msgspec.json.decode(body, type=RequestedFormat))
    assert found == ResponseFormat(kind="json_schema", schema=text, name="x")


@pytest.mark.parametrize("given", [None, RequestedFormat(type="text")])
async def test_the_type_text_needs_no_schema(given: RequestedFormat | None) -> None:
    assert await response_format(given) is None


DEEP = b'{"items":' * 40 + b"{}" + b"}" * 40


@pytest.mark.parametrize(
    ("given", "code", "param"),
    [
        (b'{"type":"yaml"}', "invalid_request", "response_format.type"),
        (b'{"type":"json_schema"}', "invalid_request", "response_format.json_schema"),
        (
            b'{"type":"json_schema","json_schema":{"name":"x"}}',
            "invalid_request",
            "response_format.json_schema.schema",
        ),
        (
            b'{"type":"json_schema","json_schema":{"name":"a b","schema":{}}}',
            "invalid_request",
            "response_format.json_schema.name",
        ),
        *(
            (
                b'{"type":"json_schema","json_schema":{"name":"x","schema":%b}}' % wrong,
                "invalid_json_schema",
                "response_format.json_schema.schema",
            )
            for wrong in (b"7", b'{"type":"text"}', b'{"$ref":"http://x/"}', DEEP)
        ),
    ],
)
async def test_the_error_for_an_unusable_format_says_why(
    given: bytes, code: str, param: str
) -> None:
    with pytest.raises(ApiError) as caught:
        await response_format(msgspec.json.decode(given, type=RequestedFormat))
    assert (caught.value.status, caught.value.code, caught.value.param) == (400, code, param)


async def test_a_bad_schema_is_a_bad_request(tmp_path: Path) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "text"}}}
    async with serving(tmp_path) as service, client_of(service) as client:
        with pytest.raises(openai.BadRequestError) as caught:
            await client.chat.completions.create(
                model="main", messages=user_says("hello"), response_format=form
            )
        assert service.model.stats.calls == 0
    assert caught.value.code == "invalid_json_schema"


async def test_the_error_names_a_schema_in_the_wrong_place(tmp_path: Path) -> None:
    form: Any = {"type": "json_object", "schema": {"type": "object"}}
    async with serving(tmp_path) as service, client_of(service) as client:
        raw = await client.chat.completions.with_raw_response.create(
            model="main", messages=user_says("hello"), response_format=form
        )
    assert raw.headers["x-hermes-ignored"] == "response_format.schema"
