"""GET /v1/models, and what a request's `model` means: agents are models."""

from collections.abc import Callable

from starlette.requests import Request

from hermes.entry.http.errors import ApiError
from hermes.entry.http.responses import JsonResponse, json_response
from hermes.types.value import Value


class Model(Value, omit_defaults=False):
    id: str
    object: str = "model"
    created: int = 0
    owned_by: str = "hermes"


class ModelListing(Value, omit_defaults=False):
    data: tuple[Model, ...]
    object: str = "list"


class Models:
    """The names that are listed, and those that stand for the default agent besides."""

    def __init__(
        self, agents: tuple[str, ...], aliases: frozenset[str], reachable: Callable[[str], bool]
    ) -> None:
        self._agents = agents
        self._aliases = aliases | {""}
        self._reachable = reachable

    async def listing(self, request: Request) -> JsonResponse:
        models = tuple(Model(id=name) for name in self._agents)
        return json_response(ModelListing(data=models))

    def override(self, name: str) -> str | None:
        """The `provider/model` that a request asks for; None for the agent's own model."""
        if name in self._agents or name in self._aliases:
            return None
        if "/" in name and self._reachable(name):
            return name
        raise ApiError(
            404,
            f"The model {name!r} does not exist; GET /v1/models lists those that do.",
            "model_not_found",
            param="model",
        )
