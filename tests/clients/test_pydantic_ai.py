"""pydantic-ai can use its own tools and structured output with the gateway."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.testing.api_clients import ApiClients
from hermes.testing.scripted import Plan
from hermes.testing.shop import BOUGHT, SHOPPING, SHOPPING_LIST, open_shop, recipe_of
from hermes.testing.strict import calls_tools


async def test_the_client_s_tools_run_together_with_the_agent_s_tools(
    tmp_path: Path, clients: ApiClients
) -> None:
    recipe = recipe_of("pydantic-ai: Tools")
    async with open_shop(tmp_path, *SHOPPING) as shop:
        assert await shop.run(recipe, clients) == recipe.prints
        assert all({"stock", "read_file"} <= declared for declared in shop.declared)


@pytest.mark.parametrize(
    ("output", "plan"),
    [
        ("NativeOutput(Item)", Plan(text="I can't answer in JSON.")),
        ("Item", calls_tools(("final_result", BOUGHT))),
    ],
    ids=["as JSON", "as a call"],
)
async def test_structured_output_is_parsed(
    tmp_path: Path, clients: ApiClients, output: str, plan: Plan
) -> None:
    recipe = recipe_of("pydantic-ai: A schema")
    program = recipe.program.replace("NativeOutput(Item)", output)
    async with open_shop(tmp_path, plan) as shop:
        assert await shop.run(replace(recipe, program=program), clients) == recipe.prints


async def test_tools_and_structured_output_can_be_used_together(
    tmp_path: Path, clients: ApiClients
) -> None:
    recipe, schema = recipe_of("pydantic-ai: Tools"), recipe_of("pydantic-ai: A schema")
    program = schema.program.replace("NativeOutput(Item))", "NativeOutput(Item), tools=[stock])")
    start, end = recipe.program.index("def stock"), recipe.program.index("result =")
    program = recipe.program[start:end] + program
    async with open_shop(tmp_path, *SHOPPING) as shop:
        assert await shop.run(replace(schema, program=program), clients) == schema.prints
        assert shop.model.requests[-1].results == ["12 left", SHOPPING_LIST, "none left"]
