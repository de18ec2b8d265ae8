"""LangChain can use its own tools and structured output with the gateway."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.testing.api_clients import ApiClients
from hermes.testing.scripted import Plan
from hermes.testing.shop import BOUGHT, SHOPPING, open_shop, recipe_of
from hermes.testing.strict import calls_tools


async def test_the_client_s_tools_run_together_with_the_agent_s_tools(
    tmp_path: Path, clients: ApiClients
) -> None:
    recipe = recipe_of("LangChain: Tools")
    async with open_shop(tmp_path, *SHOPPING) as shop:
        assert await shop.run(recipe, clients) == recipe.prints
        assert all({"stock", "read_file"} <= declared for declared in shop.declared)


@pytest.mark.parametrize(
    ("arguments", "plan"),
    [
        ("Item", Plan(text="I can't answer in JSON.")),
        ('Item, method="function_calling"', calls_tools(("Item", BOUGHT))),
    ],
    ids=["as JSON", "as a call"],
)
async def test_structured_output_is_parsed(
    tmp_path: Path, clients: ApiClients, arguments: str, plan: Plan
) -> None:
    recipe = recipe_of("LangChain: A schema")
    program = recipe.program.replace("output(Item)", f"output({arguments})")
    async with open_shop(tmp_path, plan) as shop:
        assert await shop.run(replace(recipe, program=program), clients) == recipe.prints
