"""Vercel's AI SDK can use its own tool with the gateway."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from hermes.testing.api_clients import ApiClients
from hermes.testing.shop import SHOPPING, open_shop, recipe_of


@pytest.mark.parametrize("function", ["generateText", "streamText"])
async def test_the_client_s_tools_run_together_with_the_agent_s_tools(
    tmp_path: Path, clients: ApiClients, function: str
) -> None:
    recipe = recipe_of("Vercel AI SDK: Tools")
    program = recipe.program.replace("generateText", function)
    if function == "streamText":
        program = program.replace("console.log(text)", "console.log(await text)")
        program = program.replace("await streamText", "streamText")
    async with open_shop(tmp_path, *SHOPPING) as shop:
        assert await shop.run(replace(recipe, program=program), clients) == recipe.prints
        assert all({"stock", "read_file"} <= declared for declared in shop.declared)
