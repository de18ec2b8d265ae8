"""The scripted conversation for the recipes in docs/guides/clients.md: a tool of the client returns
the stock of an item, and a tool of the agent reads a shopping list."""

import base64
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hermes.testing.api_clients import ApiClients
from hermes.testing.gateway_process import GatewayProcess, gateway_process
from hermes.testing.recipes import Recipe, recipes, run_recipe
from hermes.testing.scripted import Plan
from hermes.testing.strict import PNG_SIGNATURE, StrictModel, calls_tools

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "clients.md"
SHOPPING_LIST = "rice, tea"
SHOPPING = (
    calls_tools(("stock", {"item": "tea"}), ("read_file", {"path": "shopping.txt"})),
    calls_tools(("stock", {"item": "rice"})),
    Plan(text="Tea: {0}. The list says: {1}. Rice: {2}."),
)
"""In the first step, the model calls a tool of the client and a tool of the agent. In the second
step, it calls a tool of the client."""
BOUGHT = {"name": "tea", "count": 12}
"""The values that the model uses when a client requests JSON: a property `name` is `tea`, and a
property `count` is 12."""


class Shop:
    """A gateway process and the scripted model that it calls."""

    def __init__(self, gateway: GatewayProcess, model: StrictModel) -> None:
        self.gateway = gateway
        self.model = model

    async def run(self, recipe: Recipe, clients: ApiClients) -> str:
        """Runs the recipe and returns its output. Fails if the model refused a request."""
        printed = await run_recipe(recipe, self.gateway, clients)
        assert self.model.stats.refused == {}
        return printed

    @property
    def declared(self) -> list[set[str]]:
        """For each request to the model, the names of the tools that the request declares."""
        return [request.declared for request in self.model.requests]

    @property
    def images(self) -> list[bytes]:
        """The images in the last request to the model."""
        urls = self.model.requests[-1].images
        return [base64.b64decode(url.partition(",")[2]) for url in urls]


@asynccontextmanager
async def open_shop(folder: Path, *turn: Plan) -> AsyncIterator[Shop]:
    """Runs a gateway process whose model answers every turn with these plans, one plan for each
    step."""
    async with (
        StrictModel(*turn, facts=BOUGHT) as model,
        gateway_process(folder, model.base_url) as gateway,
    ):
        (gateway.workspace / "shopping.txt").write_text(f"{SHOPPING_LIST}\n")
        (folder / "receipt.png").write_bytes(png(3, 2))
        yield Shop(gateway, model)


def recipe_of(name: str) -> Recipe:
    """Returns the recipe with this name in docs/guides/clients.md."""
    return recipes(GUIDE)[name]


def png(width: int, height: int) -> bytes:
    """Returns a white image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        end = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + end

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = (b"\0" + b"\xff" * width) * height
    return PNG_SIGNATURE + b"".join(
        (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b""))
    )
