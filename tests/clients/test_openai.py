"""OpenAI's own client with tools, schemas and images, and with a gateway that is killed."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import openai
import pytest
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessageParam,
    ChatCompletionToolParam,
)

from hermes.testing.api_clients import ApiClients
from hermes.testing.recipes import recipes
from hermes.testing.scripted import Plan
from hermes.testing.shop import GUIDE, SHOPPING, SHOPPING_LIST, Shop, open_shop, recipe_of

STOCK = {"tea": "12 left", "rice": "none left"}
TOOLS: list[ChatCompletionToolParam] = [
    {
        "type": "function",
        "function": {
            "name": "stock",
            "description": "Tells how much of an item is in stock.",
            "parameters": {
                "type": "object",
                "properties": {"item": {"type": "string"}},
                "required": ["item"],
                "additionalProperties": False,
            },
            "strict": True,
        },
    }
]
QUESTION = "Is tea in stock? And the other items in shopping.txt?"
ANSWER = f"Tea: 12 left. The list says: {SHOPPING_LIST}. Rice: none left."
SESSION = {"X-Hermes-Session-Id": "shop"}

Ask = Callable[[list[ChatCompletionMessageParam]], Awaitable[ChatCompletion]]


def client_of(shop: Shop) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=shop.gateway.base_url, api_key=shop.gateway.key, max_retries=0, timeout=30
    )


def asking(client: openai.AsyncOpenAI, headers: dict[str, str], *, streamed: bool) -> Ask:
    async def plainly(messages: list[ChatCompletionMessageParam]) -> ChatCompletion:
        return await client.chat.completions.create(
            model="hermes-agent", messages=messages, tools=TOOLS, extra_headers=headers
        )

    async def in_pieces(messages: list[ChatCompletionMessageParam]) -> ChatCompletion:
        async with client.chat.completions.stream(
            model="hermes-agent", messages=messages, tools=TOOLS, extra_headers=headers
        ) as stream:
            return await stream.get_final_completion()

    return in_pieces if streamed else plainly


async def nothing() -> None:
    pass


async def talk(ask: Ask, before_results: Callable[[], Awaitable[None]] = nothing) -> list[str]:
    """Asks the question and sends the results of the client's tools, until there is a final answer.
    Returns the finish reasons of all answers, followed by the text of the last answer."""
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": QUESTION}]
    reasons: list[str] = []
    while True:
        completion = await ask(messages)
        message = completion.choices[0].message
        reasons.append(completion.choices[0].finish_reason)
        if not message.tool_calls:
            return [*reasons, message.content or ""]
        results: list[ChatCompletionMessageParam] = []
        for call in message.tool_calls:
            assert call.type == "function"
            item = json.loads(call.function.arguments)["item"]
            results.append({"role": "tool", "tool_call_id": call.id, "content": STOCK[item]})
        # The declared type of `messages` does not allow this message, but the examples in the SDK's
        # documentation append it, too.
        messages.append(message)  # type: ignore[arg-type]
        messages += results
        await before_results()


@pytest.mark.parametrize("headers", [{}, SESSION], ids=["stateless", "session"])
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_the_client_s_tools_run_together_with_the_agent_s_tools(
    tmp_path: Path, headers: dict[str, str], streamed: bool
) -> None:
    async with open_shop(tmp_path, *SHOPPING) as shop, client_of(shop) as client:
        said = await talk(asking(client, headers, streamed=streamed))
        assert shop.model.stats.refused == {}
        assert all({"stock", "read_file"} <= declared for declared in shop.declared)
    assert said == ["tool_calls", "tool_calls", "stop", ANSWER]


@pytest.mark.parametrize("headers", [{}, SESSION], ids=["stateless", "session"])
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_a_kill_between_call_and_result_loses_nothing(
    tmp_path: Path, headers: dict[str, str], streamed: bool
) -> None:
    async with open_shop(tmp_path, *SHOPPING) as shop:

        async def kill() -> None:
            await shop.gateway.kill()
            # The agent has read the file already, and the result is stored. If the agent read the
            # file again, its answer would contain this new text.
            (shop.gateway.workspace / "shopping.txt").write_text("nothing\n")
            await shop.gateway.start()

        async with client_of(shop) as client:
            said = await talk(asking(client, headers, streamed=streamed), kill)
        assert shop.model.stats.refused == {}
        assert shop.model.stats.calls == 3
    assert said == ["tool_calls", "tool_calls", "stop", ANSWER]


async def test_the_first_program_streams_its_answer(tmp_path: Path, clients: ApiClients) -> None:
    (recipe,) = recipes(GUIDE.with_name("openai-sdk.md")).values()
    async with open_shop(tmp_path, Plan(text="Hello! What can I do for you?")) as shop:
        assert await shop.run(recipe, clients) == recipe.prints.rstrip("\n")


async def test_the_recipe_with_tools_prints_its_answer(tmp_path: Path, clients: ApiClients) -> None:
    recipe = recipe_of("openai: Tools")
    async with open_shop(tmp_path, *SHOPPING) as shop:
        assert await shop.run(recipe, clients) == recipe.prints


async def test_the_recipe_with_a_schema_parses_its_answer(
    tmp_path: Path, clients: ApiClients
) -> None:
    recipe = recipe_of("openai: A schema")
    async with open_shop(tmp_path, Plan(text="I can't answer in JSON.")) as shop:
        assert await shop.run(recipe, clients) == recipe.prints


async def test_the_recipe_with_an_image_shows_the_image_to_the_model(
    tmp_path: Path, clients: ApiClients
) -> None:
    recipe = recipe_of("openai: An image")
    async with open_shop(tmp_path, Plan(text="Tea and rice.")) as shop:
        assert await shop.run(recipe, clients) == recipe.prints
        assert shop.images == [(tmp_path / "receipt.png").read_bytes()]
