"""`llm` can use functions, tools, schemas and attachments with the gateway."""

from pathlib import Path

from hermes.testing.api_clients import ApiClients
from hermes.testing.scripted import Plan
from hermes.testing.shop import SHOPPING, Shop, open_shop, recipe_of
from hermes.testing.strict import calls_tools

HELLO = Plan(text="Hello! What can I do for you?")


async def run_both(shop: Shop, clients: ApiClients, name: str, *turn: Plan) -> tuple[str, str]:
    """Runs two recipes (examples) of the guide: the setup of `llm`, and the recipe with this name.
    Returns the output of the second recipe, and the output that the guide shows."""
    setup, recipe = recipe_of("llm: Setup"), recipe_of(name)
    assert await shop.run(setup, clients) == setup.prints
    shop.model.turn = turn
    return await shop.run(recipe, clients), recipe.prints


async def test_functions_run_together_with_the_agent_s_tools(
    tmp_path: Path, clients: ApiClients
) -> None:
    async with open_shop(tmp_path, HELLO) as shop:
        printed, expected = await run_both(shop, clients, "llm: Tools", *SHOPPING)
        assert printed == expected
        assert all({"stock", "read_file"} <= declared for declared in shop.declared[1:])


async def test_tools_of_plugins_run_together_with_the_agent_s_tools(
    tmp_path: Path, clients: ApiClients
) -> None:
    turn = (
        calls_tools(("llm_time", {}), ("read_file", {"path": "shopping.txt"})),
        calls_tools(("llm_time", {})),
        Plan(text="It is time to buy: {1}."),
    )
    async with open_shop(tmp_path, HELLO) as shop:
        printed, expected = await run_both(shop, clients, "llm: Tools of plugins", *turn)
        assert printed == expected
        first, listed, second = shop.model.requests[-1].results
    assert "utc_time" in first
    assert "utc_time" in second
    assert listed == "rice, tea"


async def test_the_answer_conforms_to_the_schema(tmp_path: Path, clients: ApiClients) -> None:
    async with open_shop(tmp_path, HELLO) as shop:
        printed, expected = await run_both(shop, clients, "llm: A schema", HELLO)
        assert printed == expected


async def test_an_attached_image_reaches_the_model(tmp_path: Path, clients: ApiClients) -> None:
    async with open_shop(tmp_path, HELLO) as shop:
        answer = Plan(text="Tea and rice.")
        printed, expected = await run_both(shop, clients, "llm: An image", answer)
        assert printed == expected
        assert shop.images == [(tmp_path / "receipt.png").read_bytes()]
