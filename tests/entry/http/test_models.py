"""The models of the API: the agents that are listed, and what a request's `model` means."""

import msgspec
import pytest
from starlette.requests import Request

from hermes.entry.http.errors import ApiError
from hermes.entry.http.models import Models
from hermes.testing.asgi import call, http_scope

MODELS = Models(("kim", "main"), frozenset({"alias"}), lambda name: name == "vendor/known")


async def test_the_agents_are_listed_in_openais_shape() -> None:
    scope = http_scope()
    response = await call(await MODELS.listing(Request(scope)), scope)
    listed = msgspec.json.decode(response.body)
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["kim", "main"]
    assert {model["object"] for model in listed["data"]} == {"model"}


@pytest.mark.parametrize("name", ["kim", "main", "alias", ""])
def test_an_agent_answers_with_its_own_model(name: str) -> None:
    assert MODELS.override(name) is None


def test_another_model_can_be_asked_for_where_it_can_be_reached() -> None:
    assert MODELS.override("vendor/known") == "vendor/known"


@pytest.mark.parametrize("name", ["gpt-9", "vendor/unknown", "Main"])
def test_an_unknown_name_is_not_found(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        MODELS.override(name)
    assert (caught.value.status, caught.value.code, caught.value.param) == (
        404,
        "model_not_found",
        "model",
    )
