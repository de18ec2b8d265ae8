"""GET /v1/models and /v1/models/{id}, and the choice of the agent by a request's `model`."""

from collections.abc import Callable

from starlette.requests import Request

from hermes.entry.http.errors import ApiError
from hermes.entry.http.responses import JsonResponse, json_response
from hermes.types.value import Value


class Model(Value, omit_defaults=False):
    id: str
    """The name to send as `model`."""
    object: str = "model"
    """Always `model`."""
    created: int = 0
    """Always 0."""
    owned_by: str = "hermes"
    """Always `hermes`."""


class ModelListing(Value, omit_defaults=False):
    data: tuple[Model, ...]
    """The agents, each listed as a model."""
    object: str = "list"
    """Always `list`."""


class RequestedModel(Value):
    """The meaning of a request's `model`."""

    override: str | None = None
    """The `provider/model` that answers; None for the agent's own model."""
    ignored: bool = False
    """Whether the name is unknown and was ignored, so that the only agent answers."""


class Models:
    """The listed names of the agents, and the aliases of the default agent. `sole` means that only
    one agent is hosted. Then this agent answers to every name without a slash, because many clients
    send the name of a well-known model. With several agents, a misspelt name is an error, because
    the request must never reach another agent.
    """

    def __init__(
        self,
        agents: tuple[str, ...],
        aliases: frozenset[str],
        problem: Callable[[str], str | None],
        *,
        sole: bool,
    ) -> None:
        self._agents = agents
        self._aliases = aliases | {""}
        self._problem = problem
        self._sole = sole

    async def listing(self, request: Request) -> JsonResponse:
        models = tuple(Model(id=name) for name in self._agents)
        return json_response(ModelListing(data=models))

    async def one(self, request: Request) -> JsonResponse:
        """Returns the model whose id is in the path of the request. The id may contain slashes."""
        id = str(request.path_params["model_id"])
        if self._find(id) is None:
            raise self._not_found(id)
        return json_response(Model(id=id))

    def requested(self, name: str) -> RequestedModel:
        """Returns the meaning of a request's `model`. Raises ApiError if the name is unknown."""
        if found := self._find(name):
            return found
        if self._sole and "/" not in name:
            return RequestedModel(ignored=True)
        raise self._not_found(name)

    def _find(self, name: str) -> RequestedModel | None:
        if name in self._agents or name in self._aliases:
            return RequestedModel()
        if "/" in name and self._problem(name) is None:
            return RequestedModel(override=name)
        return None

    def _not_found(self, name: str) -> ApiError:
        message = f"The model {name!r} does not exist; GET /v1/models lists the models."
        if "/" in name and (problem := self._problem(name)):
            message = f"{problem}, or choose a model of GET /v1/models."
        return ApiError(404, message, "model_not_found", param="model")
