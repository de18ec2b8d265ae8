"""The API lists the agents as models, and finds the agent or model that a request names."""

import msgspec
import pytest
from starlette.requests import Request

from hermes.entry.http.errors import ApiError
from hermes.entry.http.models import Models, RequestedModel
from hermes.testing.asgi import call, http_scope


def models(*, sole: bool) -> Models:
    """Returns the models of a gateway with one agent (`sole`) or with several agents."""
    problems = {"vendor/known": None, "vendor/keyless": "The provider 'vendor' has no key: set KEY"}
    return Models(
        ("kim", "main"), frozenset({"alias"}), lambda name: problems.get(name, ""), sole=sole
    )


ONE, SEVERAL = models(sole=True), models(sole=False)
both = pytest.mark.parametrize("known", [ONE, SEVERAL], ids=["one agent", "several"])


def not_found(error: ApiError) -> bool:
    return (error.status, error.code, error.param) == (404, "model_not_found", "model")


async def test_the_agents_are_listed_in_openais_shape() -> None:
    scope = http_scope()
    response = await call(await ONE.listing(Request(scope)), scope)
    listed = msgspec.json.decode(response.body)
    assert listed["object"] == "list"
    assert [model["id"] for model in listed["data"]] == ["kim", "main"]
    assert {model["object"] for model in listed["data"]} == {"model"}


@both
@pytest.mark.parametrize("name", ["kim", "main", "alias", ""])
def test_an_agent_answers_with_its_own_model(known: Models, name: str) -> None:
    assert known.requested(name) == RequestedModel()


@both
def test_another_model_can_be_requested_if_its_provider_can_be_used(known: Models) -> None:
    assert known.requested("vendor/known") == RequestedModel(override="vendor/known")


@pytest.mark.parametrize("name", ["gpt-9", "Main", "gpt-4o:latest"])
def test_the_only_agent_answers_to_any_name_without_a_slash(name: str) -> None:
    assert ONE.requested(name) == RequestedModel(ignored=True)
    with pytest.raises(ApiError) as caught:
        SEVERAL.requested(name)
    assert not_found(caught.value), "a misspelt agent must not reach another one"


@both
def test_a_model_of_a_provider_that_can_not_be_used_is_not_found(known: Models) -> None:
    with pytest.raises(ApiError) as caught:
        known.requested("vendor/unknown")
    assert not_found(caught.value)
    assert "'vendor/unknown' does not exist; GET /v1/models lists" in str(caught.value)


@both
def test_the_error_for_a_provider_without_a_key_says_so(known: Models) -> None:
    with pytest.raises(ApiError) as caught:
        known.requested("vendor/keyless")
    assert not_found(caught.value)
    expected = "The provider 'vendor' has no key: set KEY, or choose a model of GET /v1/models."
    assert str(caught.value) == expected


@both
@pytest.mark.parametrize("id", ["kim", "alias", "vendor/known"])
async def test_a_model_can_be_looked_up(known: Models, id: str) -> None:
    scope = http_scope()
    request = Request({**scope, "path_params": {"model_id": id}})
    response = await call(await known.one(request), scope)
    assert msgspec.json.decode(response.body) == {
        "id": id,
        "object": "model",
        "created": 0,
        "owned_by": "hermes",
    }


@both
@pytest.mark.parametrize("id", ["gpt-9", "vendor/unknown", "main/"])
async def test_a_model_that_does_not_exist_can_not_be_looked_up(known: Models, id: str) -> None:
    request = Request({**http_scope(), "path_params": {"model_id": id}})
    with pytest.raises(ApiError) as caught:
        await known.one(request)
    assert not_found(caught.value)
