"""The model name of a chat completion selects an agent or a model."""

from collections.abc import Sequence
from pathlib import Path

import openai
import pytest
from msgspec.structs import replace

from hermes import hookimpl
from hermes.entry.http.server import ApiOptions
from hermes.testing.openai_client import client_of, user_says
from hermes.testing.scripted import is_complete
from hermes.testing.service import MODEL, SERVICE_KEY, TEST_OVERRIDES, serving
from hermes.types.agents import AgentHome
from hermes.types.identity import AgentId


@pytest.mark.parametrize(
    ("name", "expected"),
    [("hermes-agent", ["hermes-agent", "main"]), ("kim", ["kim", "main"]), ("main", ["main"])],
)
async def test_every_model_that_is_listed_is_the_default_agent(
    tmp_path: Path, name: str, expected: list[str]
) -> None:
    options = ApiOptions(key=SERVICE_KEY, port=0, model_name=name)
    async with serving(tmp_path, options) as service, client_of(service) as client:
        listed = [model.id async for model in client.models.list()]
        for one in listed:
            answer = await client.chat.completions.create(model=one, messages=user_says("hello"))
            assert answer.choices[0].message.content
    assert listed == expected


@pytest.mark.parametrize("name", ["main", "hermes-agent", MODEL, ""])
async def test_every_name_that_a_client_may_be_configured_with_works(
    tmp_path: Path, name: str
) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        answer = await client.chat.completions.create(model=name, messages=user_says("hello"))
        sent = service.model.requests[-1].model
    assert answer.choices[0].message.content
    assert sent == MODEL


async def test_the_only_agent_answers_to_a_name_that_means_nothing_here(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        raw = await client.chat.completions.with_raw_response.create(
            model="gpt-9", messages=user_says("hello")
        )
        sent = service.model.requests[-1].model
    assert raw.headers["x-hermes-ignored"] == "model"
    assert is_complete(raw.parse().choices[0].message.content or "")
    assert sent == MODEL


class SecondAgent:
    """A plugin that hosts an agent in addition to the default one."""

    @hookimpl
    def register_agents(self, home: Path) -> Sequence[AgentHome]:
        return (AgentHome(id=AgentId("second"), home=home / "second"),)


async def test_with_several_agents_a_name_that_means_nothing_is_not_found(tmp_path: Path) -> None:
    parts = replace(TEST_OVERRIDES, plugins=(SecondAgent(),))
    async with serving(tmp_path, overrides=parts) as service, client_of(service) as client:
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(model="gpt-9", messages=user_says("hello"))
        answer = await client.chat.completions.create(model="main", messages=user_says("hello"))
        assert service.model.stats.calls == 1
    assert caught.value.code == "model_not_found"
    assert answer.choices[0].message.content


async def test_a_model_of_an_unknown_provider_is_not_found(tmp_path: Path) -> None:
    async with serving(tmp_path) as service, client_of(service) as client:
        with pytest.raises(openai.NotFoundError) as caught:
            await client.chat.completions.create(model="nobody/gpt-9", messages=user_says("hello"))
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("nobody/gpt-9")
        assert (await client.models.retrieve(MODEL)).id == MODEL
    assert caught.value.code == "model_not_found"
